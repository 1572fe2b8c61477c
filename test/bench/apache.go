package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	servers "portico/test/process"
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
// but the workers bounds what happens at a time. At its end Apache sends SIGTERM to its process group, so it gets one of its own.
func (b *bench) apache(ctx context.Context, tracker string, set workerServer) (*server, error) {
	keepAlive := "Off"
	if set.keepAlive {
		keepAlive = "On"
	}
	words := []string{
		"TRACKER", strings.TrimSuffix(tracker, "/"), "WORKERS", strconv.Itoa(set.workers),
		"START", strconv.Itoa(min(set.workers, servers.StartedWorkers)), "KEEP", keepAlive,
	}
	s, err := b.configured(ctx, "apache", servers.ApacheConfig, words, "setsid", "/usr/sbin/apache2", "-d", "DIR", "-f", "FILE", "-D", "FOREGROUND")
	if err == nil {
		s.group = true
	}
	return s, err
}
