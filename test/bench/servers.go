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

// listening starts a server at a free address. A port that was free may be taken by a connection before the server listens at it, so it tries again.
func (b *bench) listening(ctx context.Context, name string, launch func(address string) (*process, error)) (*server, error) {
	var failed error
	for range 3 {
		address, err := freeAddress(ctx)
		if err != nil {
			return nil, err
		}
		p, err := launch(address)
		if err == nil {
			return &server{process: p, name: name, address: address}, nil
		}
		if failed = err; ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// tracker starts the reference tracker with the data behind the recordings.
func (b *bench) tracker(ctx context.Context, arguments ...string) (*server, error) {
	return b.listening(ctx, "tracker", func(address string) (*process, error) {
		return start(ctx, b.dir, b.portico, address, append([]string{"tracker", "--listen", address, "--seed", "fixture"}, arguments...)...)
	})
}

// redis starts a real Redis server that keeps nothing on disk.
func (b *bench) redis(ctx context.Context) (*server, error) {
	return b.listening(ctx, "redis", func(address string) (*process, error) {
		_, port, _ := strings.Cut(address, ":")
		return start(ctx, b.dir, "redis-server", address, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	})
}

// facade is the configuration of a Portico.
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

// facade starts it.
func (b *bench) facade(ctx context.Context, f facade) (*server, error) {
	var admin string
	s, err := b.listening(ctx, f.name, func(address string) (_ *process, err error) {
		if admin, err = freeAddress(ctx); err != nil {
			return nil, err
		}
		cache := strings.Join(append([]string{"redis: " + f.redis}, f.cache...), "\n  ")
		text := fmt.Sprintf("listen: %s\nadmin:\n  listen: %s\ntrackers:\n  main:\n    url: %s\n    dialect: bugzilla-5\n%scache:\n  %s\nlog:\n  level: %s\n%s\n",
			address, admin, f.tracker, f.trackers, cache, f.level, strings.Join(f.more, "\n"))
		file := filepath.Join(b.dir, "portico-"+address[len("127.0.0.1:"):]+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write a configuration: %w", err)
		}
		return start(ctx, b.dir, b.portico, address, "serve", "--config", file)
	})
	if err != nil {
		return nil, err
	}
	s.admin = admin
	return s, nil
}
