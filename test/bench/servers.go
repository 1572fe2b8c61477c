package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// server is a process and where it listens.
type server struct {
	*process
	name    string
	address string
	// admin is the second listener of Portico.
	admin string
}

func (s *server) url(path string) string { return "http://" + s.address + path }

// tracker starts the reference tracker with the data behind the recordings.
func (b *bench) tracker(ctx context.Context, arguments ...string) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	arguments = append([]string{"tracker", "--listen", address, "--seed", "fixture"}, arguments...)
	p, err := start(ctx, b.dir, b.portico, address, arguments...)
	return &server{process: p, name: "tracker", address: address}, err
}

// gatedTracker starts the tracker behind a gate. stop ends both.
func (b *bench) gatedTracker(ctx context.Context) (front *gate, stop func(), err error) {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return nil, nil, err
	}
	if front, err = newGate(ctx, tracker.url("/")); err != nil {
		tracker.stop()
		return nil, nil, err
	}
	return front, func() { front.close(); tracker.stop() }, nil
}

// redis starts a real Redis server that keeps nothing on disk.
func (b *bench) redis(ctx context.Context) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(address, ":")
	p, err := start(ctx, b.dir, "redis-server", address, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	return &server{process: p, name: "redis", address: address}, err
}

// facade is how a Portico is to be.
type facade struct {
	name, tracker, redis string
	// level is that of the log: info has a line for each request, warn has none.
	level string
	// cache is more of the cache's configuration, lines of YAML.
	cache []string
	// trackers are more of them, and more is any other section, lines of YAML.
	trackers string
	more     []string
}

// facade starts it. A port that was free may be taken by a connection before it is listened at, so it tries again.
func (b *bench) facade(ctx context.Context, f facade) (s *server, err error) {
	for range 3 {
		if s, err = b.tryFacade(ctx, f); err == nil || ctx.Err() != nil {
			break
		}
	}
	return s, err
}

func (b *bench) tryFacade(ctx context.Context, f facade) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cache := strings.Join(append([]string{"redis: " + f.redis}, f.cache...), "\n  ")
	text := fmt.Sprintf("listen: %s\nadmin:\n  listen: %s\ntrackers:\n  main:\n    url: %s\n%scache:\n  %s\nlog:\n  level: %s\n%s\n",
		address, admin, f.tracker, f.trackers, cache, f.level, strings.Join(f.more, "\n"))
	file := filepath.Join(b.dir, "portico-"+address[len("127.0.0.1:"):]+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write a configuration: %w", err)
	}
	p, err := start(ctx, b.dir, b.portico, address, "serve", "--config", file)
	return &server{process: p, name: f.name, address: address, admin: admin}, err
}

// nginx starts the peer, with Debian's settings where they matter: sendfile, tcp_nopush, a worker per core.
func (b *bench) nginx(ctx context.Context, name, tracker string, log bool) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, strings.ReplaceAll(name, " ", "-"))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make a folder for nginx: %w", err)
	}
	access := "off"
	if log {
		access = "access.log line"
	}
	file := filepath.Join(dir, "nginx.conf")
	text := strings.NewReplacer("DIR", dir, "ACCESS", access, "ADDRESS", address, "TRACKER", strings.TrimSuffix(tracker, "/")).Replace(nginxConf)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of nginx: %w", err)
	}
	p, err := start(ctx, b.dir, "nginx", address, "-p", dir, "-c", file)
	return &server{process: p, name: name, address: address}, err
}

// nginxConf writes a line with the same members as Portico's log for each request, and keeps connections as long as the load
// lasts. The credential is in the address and so in the key.
const nginxConf = `
user root; worker_processes auto; daemon off; pid DIR/nginx.pid; error_log DIR/error.log;
events { worker_connections 1024; }
http {
  sendfile on; tcp_nopush on; keepalive_timeout 120; keepalive_requests 1000000000; client_max_body_size 0;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  log_format line escape=json '{"time":"$time_iso8601","level":"INFO","msg":"request","id":"$request_id","client":"$remote_addr",'
    '"method":"$request_method","path":"$uri","operation":"-","status":$status,"duration":$request_time,'
    '"bytes":$body_bytes_sent,"cache":"$upstream_cache_status"}';
  access_log ACCESS;
  proxy_cache_path DIR/cache keys_zone=answers:8m;
  server {
    listen ADDRESS;
    location / { proxy_pass TRACKER; }
    location /rest/flag_type/ {
      proxy_pass TRACKER; proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $request_uri;
      proxy_ignore_headers Set-Cookie Cache-Control Expires Vary; proxy_hide_header Set-Cookie;
      add_header X-Cache $upstream_cache_status;
    }
  }
}
`
