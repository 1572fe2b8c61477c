package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// workerServer is how an Apache in front of the tracker is set up.
type workerServer struct {
	workers   int
	keepAlive bool
}

func (w workerServer) String() string {
	if w.keepAlive {
		return fmt.Sprintf("%d workers, KeepAlive 5 s", w.workers)
	}
	return fmt.Sprintf("%d workers, KeepAlive off", w.workers)
}

// apache starts Apache with prefork in front of a tracker. Each request has a connection of its own to the tracker, so that nothing
// but the workers bounds what happens at a time.
func (b *bench) apache(ctx context.Context, tracker string, set workerServer) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "apache-"+strings.TrimPrefix(address, "127.0.0.1:"))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make a folder for Apache: %w", err)
	}
	keepAlive := "Off"
	if set.keepAlive {
		keepAlive = "On"
	}
	text := strings.NewReplacer("DIR", dir, "ADDRESS", address, "TRACKER", strings.TrimSuffix(tracker, "/"),
		"WORKERS", strconv.Itoa(set.workers), "START", strconv.Itoa(min(set.workers, startedWorkers)), "KEEP", keepAlive).Replace(apacheConf)
	file := filepath.Join(dir, "apache.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of Apache: %w", err)
	}
	// At its end Apache sends SIGTERM to its process group, so it gets one of its own.
	p, err := start(ctx, dir, "setsid", address, "/usr/sbin/apache2", "-d", dir, "-f", file, "-D", "FOREGROUND")
	if err != nil {
		return nil, err
	}
	p.group = true
	return &server{process: p, name: "apache", address: address}, nil
}

// startedWorkers is how many workers there are from the start at most. Each idle one is woken by each new connection.
const startedWorkers = 64

// apacheConf has Debian's KeepAlive and the backlog that Apache has by default.
const apacheConf = `
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
