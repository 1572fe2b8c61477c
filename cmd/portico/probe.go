package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"portico/cache"
	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/upstream/bugzilla"
	"portico/upstream/state"
)

// probeTimeout bounds one probe: an operator waits for it.
const probeTimeout = 10 * time.Second

// runProbes tries the connections that a configuration needs and returns how each went. An embedded Redis is not there to be
// probed.
func runProbes(ctx context.Context, env environment, cfg config.Config) (list []entry, failed error) {
	probe := func(name string, try func(context.Context) (string, error)) {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		waiting := env.progress(func() string { return "waiting for " + name })
		defer waiting.stop()
		found, err := try(ctx)
		if err != nil {
			failed, found = exitError{status: exitFailed}, "FAILED: "+err.Error()
		}
		list = append(list, entry{"probe", name + ": " + found})
	}
	probe("payloads", func(context.Context) (string, error) { return probeDirectory("blobs.dir", cfg.Blobs.Dir, false) })
	if journal := &cfg.Switchover.Journal; cfg.Candidate != "" && journal.Keys != nil {
		probe("journal", func(context.Context) (string, error) {
			return probeDirectory("switchover.journal.spool", journal.Spool, true)
		})
	}
	for _, name := range config.SortedKeys(cfg.Trackers) {
		probe("tracker "+name, func(ctx context.Context) (string, error) { return probeTracker(ctx, cfg, name) })
	}
	if cfg.Cache.Scope != "off" && !cfg.Cache.Redis.Embedded() {
		probe("redis", func(ctx context.Context) (string, error) { return probeRedis(ctx, cfg) })
	}
	if cfg.NeedsStore() {
		probe("state", func(ctx context.Context) (string, error) { return probeState(ctx, cfg.State) })
	}
	return list, failed
}

// probeRedis reads from Redis as the cache does, under a name of its own, so that it touches nothing of a running Portico.
func probeRedis(ctx context.Context, cfg config.Config) (string, error) {
	options, err := app.RedisOptions(&cfg)
	if err != nil {
		return "", err
	}
	options.Timeout = probeTimeout / 5
	// Any secret will do, and one that is given is not put into Redis.
	tried := cache.New(nil, cache.Options{Tracker: "portico-check", Redis: options, Secret: make([]byte, 32)})
	if err := errors.Join(tried.Probe(ctx), tried.Close()); err != nil {
		if number, ok := errors.AsType[syscall.Errno](err); ok {
			err = number
		}
		return "", fmt.Errorf("cannot use Redis: %w; is it running? check cache.redis", err)
	}
	return "responds", nil
}

// probeDirectory makes a file in the directory that a key names, and removes it. made says that serve makes a directory that is missing;
// then the file is made in the one above.
func probeDirectory(key, dir string, made bool) (string, error) {
	file, err := os.CreateTemp(dir, "portico-blob-*")
	if above := filepath.Dir(dir); made && errors.Is(err, os.ErrNotExist) && above != dir {
		_, err = probeDirectory(key, above, made)
		return "will be created", err
	}
	if err != nil {
		return "", fmt.Errorf("%w; check %s", err, key)
	}
	return "can be stored", errors.Join(file.Close(), os.Remove(file.Name()))
}

// probeState reads the store and changes nothing: a file that is created here would belong to the wrong account.
func probeState(ctx context.Context, at string) (string, error) {
	found, err := state.Inspect(ctx, at)
	switch {
	case err != nil:
		return "", err
	case found.Version == 0:
		return "will be created", nil
	case found.Version < found.Newest:
		return fmt.Sprintf("opens, and will be brought from version %d to %d", found.Version, found.Newest), nil
	}
	return "opens", nil
}

// probeTracker probes one tracker, with requests as serve sends them.
func probeTracker(ctx context.Context, cfg config.Config, name string) (string, error) {
	t := cfg.Trackers[name]
	base, err := url.Parse(t.URL)
	settings, failed := t.TLSFiles.Client()
	if err := cmp.Or(err, failed); err != nil {
		return "", err
	}
	over := t.SentHost().Over(&http.Transport{TLSClientConfig: settings, DisableCompression: true, DisableKeepAlives: true})
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	found, err := bugzilla.Probe(ctx, name, bugzilla.Options{URL: base, Dialect: t.Dialect, Transport: over})
	notes := append([]string{"version " + found.Version}, found.Notes...)
	if !found.Known { // otherwise the summary has it
		notes = append(notes, writesWarnings(cfg.Switchover.Rules, name, name == cfg.Candidate, found.Dialect.Name)...)
	}
	return strings.Join(notes, "; "), unreachable(err, "the tracker", "is it running? check trackers."+name+".url")
}
