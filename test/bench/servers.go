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

// inTurns loads servers in turns with what a turn does, and none of them is always the first. The first turn of each warms it up.
func inTurns(t *table, life int, servers []*server, turn func(t *table, of *server) error) error {
	for n := range turns + 1 {
		into := t
		if n == 0 {
			into = new(table)
		}
		for i := range servers {
			if err := turn(into, servers[(i+n+life)%len(servers)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// before starts a cannedTracker and the peers before it, without access logs. stop ends all.
func (b *bench) before(ctx context.Context) (tracker *server, servers []*server, stop func(), err error) {
	tracker, end, err := b.cannedTracker(ctx, "/none", 0)
	if err != nil {
		return nil, nil, nil, err
	}
	servers, endPeers, err := b.peers(ctx, tracker.url("/"), false)
	if err != nil {
		end()
		return nil, nil, nil, err
	}
	return tracker, servers, func() { endPeers(); end() }, nil
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
	// candidate is the address of a second tracker, which takes a file for the state.
	candidate, state string
	// more is any other section, lines of YAML.
	more []string
}

// facade starts it.
func (b *bench) facade(ctx context.Context, f facade) (*server, error) {
	var admin string
	s, err := b.listening(ctx, f.name, func(address string) (_ *process, err error) {
		if admin, err = freeAddress(ctx); err != nil {
			return nil, err
		}
		trackers, more := fmt.Sprintf("trackers:\n  main: {url: %q, dialect: bugzilla-5}", f.tracker), strings.Join(f.more, "\n")
		if f.candidate != "" {
			trackers += fmt.Sprintf("\n  next: {url: %q, dialect: bugzilla-5}\nprimary: main\ncandidate: next\nstate: %q", f.candidate, "sqlite:"+f.state)
		}
		text := fmt.Sprintf("listen: %s\nadmin: {listen: %q}\n%s\ncache: {redis: %q}\nlog: {level: %s}\n%s\n", address, admin, trackers, f.redis, f.level, more)
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
