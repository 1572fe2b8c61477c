package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The names of the servers that are compared.
const (
	nginxName   = "nginx"
	haproxyName = "haproxy"
	goproxyName = "goproxy"
	porticoName = "portico"
)

// peers starts the servers that are compared, in front of one tracker: those of the names, or all. stop ends them.
func (b *bench) peers(ctx context.Context, tracker string, log bool, names ...string) (all []*server, stop func(), err error) {
	stop = func() {
		for _, each := range all {
			each.stop()
		}
	}
	if names == nil {
		names = []string{nginxName, haproxyName, goproxyName, porticoName}
	}
	for _, name := range names {
		if b.among != "" && !slices.Contains(strings.Split(b.among, ","), name) {
			continue
		}
		one, err := b.peer(ctx, name, strings.TrimSuffix(strings.TrimPrefix(tracker, "http://"), "/"), log)
		if err != nil {
			stop()
			return nil, nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, nil, errors.New("no server to measure: -peers names none")
	}
	return all, stop, nil
}

// peer starts one server, which writes a line for each request or none. The plain proxy never writes one.
func (b *bench) peer(ctx context.Context, name, tracker string, log bool) (*server, error) {
	nginxLog, haproxyLog, level := "off", "", "warn"
	if log {
		nginxLog, haproxyLog, level = "access.log line", "log global\n  option httplog", "info"
	}
	switch name {
	case nginxName:
		return b.configured(ctx, name, nginxConf, []string{"TRACKER", tracker, "ACCESS", nginxLog}, name, "-p", "DIR", "-c", "FILE")
	case haproxyName:
		return b.configured(ctx, name, haproxyConf, []string{"TRACKER", tracker, "ACCESS", haproxyLog}, name, "-db", "-f", "FILE")
	case goproxyName:
		return b.startHelper(ctx, name, "plain-proxy", "http://"+tracker)
	default:
		return b.facade(ctx, facade{name: name, tracker: "http://" + tracker + "/", redis: "embedded", level: level})
	}
}

// configured starts a command with a configuration file in a directory of its own. In both, words are replaced in pairs, and so are DIR, FILE
// and ADDRESS.
func (b *bench) configured(ctx context.Context, name, conf string, words []string, command ...string) (*server, error) {
	return b.listening(ctx, name, func(address string) (*process, error) {
		dir := filepath.Join(b.dir, name+"-"+strings.TrimPrefix(address, "127.0.0.1:"))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, fmt.Errorf("make a directory for %s: %w", name, err)
		}
		file := filepath.Join(dir, "server.conf")
		replacer := strings.NewReplacer(append(words, "DIR", dir, "FILE", file, "ADDRESS", address)...)
		if err := os.WriteFile(file, []byte(replacer.Replace(conf)), 0o600); err != nil {
			return nil, fmt.Errorf("write the configuration of %s: %w", name, err)
		}
		filled := strings.Split(replacer.Replace(strings.Join(command, " ")), " ")
		return start(ctx, dir, filled[0], address, filled[1:]...)
	})
}

// nginxConf has Debian's settings where they matter (sendfile, tcp_nopush, a worker for each core). It writes a line with the same members
// as Portico's log for each request, keeps connections on both sides, streams bodies without files, and sends one request to the tracker for a key that is not cached.
// The credential is in the address and so in the key.
const nginxConf = `
user root; worker_processes auto; worker_rlimit_nofile 16384; daemon off; pid DIR/nginx.pid; error_log DIR/error.log;
events { worker_connections 4096; }
http {
  sendfile on; tcp_nopush on; keepalive_timeout 120; keepalive_requests 1000000000; client_max_body_size 0;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  log_format line escape=json '{"time":"$time_iso8601","level":"INFO","msg":"request","id":"$request_id","client":"$remote_addr",'
    '"method":"$request_method","path":"$uri","operation":"-","status":$status,"duration":$request_time,'
    '"bytes":$body_bytes_sent,"cache":"$upstream_cache_status"}';
  access_log ACCESS;
  proxy_cache_path DIR/cache keys_zone=responses:8m;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; client_body_buffer_size 256k; proxy_max_temp_file_size 0;
  upstream tracker { server TRACKER; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen ADDRESS backlog=4096;
    location / { proxy_pass http://tracker; }
    location /rest/flag_type/ {
      proxy_pass http://tracker; proxy_cache responses; proxy_cache_valid 200 1h; proxy_cache_key $request_uri; proxy_cache_lock on;
      proxy_ignore_headers Set-Cookie Cache-Control Expires Vary; proxy_hide_header Set-Cookie;
      add_header X-Cache $upstream_cache_status;
    }
  }
}
`

// haproxyConf keeps connections on both sides and caches flag types. It tries a tracker that refuses once only, as the others do.
const haproxyConf = `
global
  maxconn 8000
  log stdout format raw local0
defaults
  mode http
  ACCESS
  retries 0
  http-reuse always
  timeout connect 5s
  timeout client 120s
  timeout server 120s
  timeout http-keep-alive 120s
cache responses
  total-max-size 16
  max-object-size 1000000
  max-age 3600
frontend clients
  bind ADDRESS backlog 4096
  use_backend cached if { path_beg /rest/flag_type/ }
  default_backend plain
backend plain
  server tracker TRACKER
backend cached
  http-request cache-use responses
  http-response set-header Cache-Control max-age=3600
  http-response cache-store responses
  http-response set-header X-Cache HIT if { res.cache_hit }
  server tracker TRACKER
`
