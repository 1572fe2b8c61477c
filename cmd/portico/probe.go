package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"portico/cache"
	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/canary/writes"
	"portico/upstream/state"
)

// probeTimeout bounds one probe: an operator waits for it.
const probeTimeout = 10 * time.Second

// runProbes tries the connections that a configuration needs and prints how each went. An embedded Redis is not there to be
// probed.
func runProbes(ctx context.Context, env environment, cfg config.Config) (failed error) {
	probe := func(name string, try func(context.Context) (string, error)) {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		found, err := try(ctx)
		if err != nil {
			failed, found = exitError{status: exitFailed}, "FAILED: "+err.Error()
		}
		fmt.Fprintf(env.stdout, "  probe      %s: %s\n", name, found)
	}
	for _, name := range config.SortedKeys(cfg.Trackers) {
		probe("tracker "+name, func(ctx context.Context) (string, error) { return probeTracker(ctx, cfg, name) })
	}
	if cfg.Cache.Scope != "off" && !cfg.Cache.Redis.Embedded() {
		probe("redis", func(ctx context.Context) (string, error) { return probeRedis(ctx, cfg, env) })
	}
	if cfg.Candidate != "" {
		probe("state", func(ctx context.Context) (string, error) { return probeState(ctx, cfg.State) })
	}
	if cfg.Candidate != "" && cfg.Canary.Isolated {
		probe("marker", func(ctx context.Context) (string, error) { return probeMarker(ctx, cfg) })
	}
	return failed
}

// probeRedis reads from Redis as the cache does, under a name of its own, so that it touches nothing of a running Portico.
func probeRedis(ctx context.Context, cfg config.Config, env environment) (string, error) {
	options, err := app.RedisOptions(&cfg, env.variable)
	if err != nil {
		return "", err
	}
	options.Timeout = probeTimeout / 5
	// Any secret will do, and one that is given is not put into Redis.
	tried := cache.New(nil, cache.Options{Tracker: "portico-check", Redis: options, Secret: make([]byte, 32)})
	if err := errors.Join(tried.Probe(ctx), tried.Close()); err != nil {
		return "", fmt.Errorf("asking Redis: %w", err)
	}
	return "answers", nil
}

// probeState opens the store as start-up does, which migrates its schema.
func probeState(ctx context.Context, at string) (string, error) {
	store, err := state.Open(ctx, at)
	if err != nil {
		return "", err
	}
	_, known, err := store.CurrentRevision(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return "", err
	}
	if known {
		return "opens, and holds rules of an earlier run", nil
	}
	return "opens, and is empty", nil
}

// probeMarker checks, without any credential, that the candidate alone has the product that marks it as isolated.
func probeMarker(ctx context.Context, cfg config.Config) (string, error) {
	anonymous := func(string) upstream.Caller { return upstream.Caller{} }
	for _, tracker := range []struct{ name, problem string }{
		{cfg.Candidate, "the candidate has no product %q that everybody may see"},
		{cfg.Primary, "the primary tracker has the product %q too, or cannot be asked"},
	} {
		settings := cfg.Trackers[tracker.name]
		base, err := url.Parse(settings.URL)
		if err != nil {
			return "", err
		}
		transport, err := probeTransport(settings)
		if err != nil {
			return "", err
		}
		client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: settings.Dialect, Transport: transport})
		if err != nil {
			return "", err
		}
		if !writes.IsMarked(ctx, map[string]upstream.Tracker{tracker.name: client}, cfg.Candidate, cfg.Canary.Marker, anonymous) {
			return "", fmt.Errorf(tracker.problem, cfg.Canary.Marker)
		}
	}
	return "the candidate has it, the primary tracker has not", nil
}

// probeTransport sends requests to a tracker as serve does.
func probeTransport(t config.Tracker) (http.RoundTripper, error) {
	settings, err := t.TLSFiles.Client()
	if err != nil {
		return nil, err
	}
	return t.SentHost().Over(&http.Transport{TLSClientConfig: settings, DisableCompression: true, DisableKeepAlives: true}), nil
}

// noRedirect returns a redirect as the response that it is: a tracker that redirects is configured by the wrong address.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// probeTracker requests the version of a tracker, which every Bugzilla-style server shows to everybody (tracker-behaviour.md
// section 1), at each path that its REST interface can have.
func probeTracker(ctx context.Context, cfg config.Config, name string) (string, error) {
	t := cfg.Trackers[name]
	transport, err := probeTransport(t)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	base, below, roots := strings.TrimRight(t.URL, "/"), "", bugzilla.Roots()
	dialect, pinned := mapping.DialectNamed(t.Dialect)
	version, missing, err := askVersion(ctx, client, name, base+roots[0])
	for _, root := range roots[1:] {
		if !missing {
			break
		}
		other, _, otherErr := askVersion(ctx, client, name, base+root)
		if otherErr != nil {
			continue
		}
		below, missing = mapping.Dialect{Root: root}.Below(), false
		if !pinned { // with a configured dialect Portico uses the first path only
			version, err = other, nil
		}
	}
	place := fmt.Sprintf("found below %s: set its url to %s/", below, config.RedactURL(base+below))
	switch {
	case err != nil && below != "":
		return "", fmt.Errorf("no /rest/version; the tracker was %s", place)
	case err != nil:
		return "", err
	case !pinned:
		dialect = mapping.DialectOfVersion(version)
	}
	if below != "" {
		version += ", " + place
	}
	notes := []string{"version " + version}
	if !pinned && cfg.Candidate != "" && len(cfg.Switchover.Rules) > 0 {
		notes = append(notes, writesWarnings(cfg.Switchover.Table(), name, name == cfg.Candidate, dialect)...)
	}
	if dialect.JSONRPC {
		var refused []string
		refused, err = probeJSONRPC(ctx, client, base+below)
		notes = append(notes, refused...)
	}
	return strings.Join(notes, "; "), err
}

// askVersion requests the version below one path. missing says that there is nothing.
func askVersion(ctx context.Context, client *http.Client, tracker, address string) (version string, missing bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/version", nil)
	if err != nil {
		return "", false, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", false, fmt.Errorf("asking for the version: %w", err)
	}
	defer response.Body.Close()
	if location, err := response.Location(); err == nil {
		return "", false, fmt.Errorf("the tracker redirects to %s: is that its address? If that is its own address, set trackers.%s.host: %s://%s",
			config.RedactURL(location.String()), tracker, location.Scheme, location.Host)
	}
	var found struct{ Version string }
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&found)
	// An operator's terminal might obey characters that cannot be printed.
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	switch {
	case err != nil:
		err = fmt.Errorf("HTTP %d without JSON where a tracker tells its version: %w", response.StatusCode, err)
	case found.Version == "":
		err = errors.New("a response without a version: this may be no tracker")
	case len(found.Version) > 100 || strings.ContainsFunc(found.Version, unprintable):
		err = errors.New("an invalid version: this may be no tracker")
	}
	return found.Version, response.StatusCode == http.StatusNotFound, err
}

// probeJSONRPC checks that the web server lets JSON-RPC through, and returns a note where it does not.
func probeJSONRPC(ctx context.Context, client *http.Client, base string) (note []string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/jsonrpc.cgi",
		strings.NewReader(`{"method":"Bugzilla.version","params":[{}],"id":1}`))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking by JSON-RPC: %w", err)
	}
	defer response.Body.Close()
	var found map[string]any
	if json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&found) == nil {
		return nil, nil
	}
	return []string{fmt.Sprintf("/jsonrpc.cgi is refused (HTTP %d): product names with a slash or with other characters than ASCII "+
		"cannot be read, and hide_keys cannot work", response.StatusCode)}, nil
}
