package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// StartedWorkers is how many workers there are from the start at most. Each idle one is woken by each new connection.
const StartedWorkers = 64

// ApacheConfig is the template of a configuration. It has Debian's KeepAlive and the backlog that Apache has by default. Each request has a connection of its own to the
// tracker, so that nothing but the workers bounds what happens at a time.
const ApacheConfig = `
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
ProxyPass / TRACKER/ disablereuse=On nocanon
`

// WriteApacheConfig writes the configuration of an Apache with prefork in front of a tracker into a folder, and gives its file.
func WriteApacheConfig(dir, address, tracker string, workers int, keepAlive bool) (file string, err error) {
	text := strings.NewReplacer("DIR", dir, "ADDRESS", address, "TRACKER", strings.TrimSuffix(tracker, "/"),
		"WORKERS", strconv.Itoa(workers), "START", strconv.Itoa(min(workers, StartedWorkers)),
		"KEEP", map[bool]string{true: "On", false: "Off"}[keepAlive]).Replace(ApacheConfig)
	file = filepath.Join(dir, "apache.conf")
	return file, os.WriteFile(file, []byte(text), 0o600)
}
