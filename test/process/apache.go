package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// startedWorkers is how many workers there are from the start at most. Each idle one is woken by each new connection.
const startedWorkers = 64

// apacheConfig is the template of a configuration. It has Debian's KeepAlive and the backlog that Apache has by default. Each request has a connection of its own to the
// tracker, so that nothing but the workers bounds what happens at a time.
const apacheConfig = `
ServerName tracker.example
Listen ADDRESS
PidFile DIR/apache.pid
Mutex file:DIR default
ErrorLog DIR/error.log
User nobody
Group nogroup
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
ServerLimit WORKERS
StartServers START
MinSpareServers 1
MaxSpareServers START
MaxRequestWorkers WORKERS
MaxConnectionsPerChild 0
KeepAlive KEEP
KeepAliveTimeout 5
MaxKeepAliveRequests 100
AllowEncodedSlashes NoDecode
ProxyPass / TRACKER disablereuse=On nocanon
`

// Apache runs an Apache with prefork before a tracker, and gives where it is. keepAlive is On or Off.
func Apache(t testing.TB, tracker string, workers int, keepAlive string) (base string) {
	t.Helper()
	program, err := exec.LookPath("apache2")
	if err != nil {
		program = "/usr/sbin/apache2"
	}
	dir, err := os.MkdirTemp("", "portico-apache-") //nolint:usetesting // the workers are of another user, who may not enter the folder of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // the workers are of another user
		t.Fatal(err)
	}
	address, file := FreeAddress(t), filepath.Join(dir, "apache.conf")
	text := strings.NewReplacer("DIR", dir, "ADDRESS", address, "TRACKER", tracker+"/", "KEEP", keepAlive,
		"WORKERS", strconv.Itoa(workers), "START", strconv.Itoa(min(workers, startedWorkers))).Replace(apacheConfig)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// At its end Apache sends SIGTERM to its process group, so it gets one of its own.
	Launch(t, Spec{
		Program: "setsid", Args: []string{program, "-d", dir, "-f", file, "-D", "FOREGROUND"},
		Ready: func(*Process) bool { return Listens(address) },
	})
	return "http://" + address
}
