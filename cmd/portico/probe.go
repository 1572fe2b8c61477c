package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"portico/cache"
)

// probeTimeout bounds one probe: an operator waits for it.
const probeTimeout = 10 * time.Second

// probes lists the connections that a configuration needs. Secrets are found with
// lookup. A Redis inside the process is not there to be probed.
func probes(cfg Config, lookup func(string) (string, bool)) []probe {
	var all []probe
	for _, name := range sortedKeys(cfg.Trackers) {
		t := cfg.Trackers[name]
		all = append(all, probe{
			name: "tracker " + name,
			try:  func(ctx context.Context) (string, error) { return probeTracker(ctx, t) },
		})
	}
	if cfg.Cache.Scope != "off" && !cfg.Cache.Redis.Embedded() {
		all = append(all, probe{
			name: "redis",
			try:  func(ctx context.Context) (string, error) { return probeRedis(ctx, &cfg, lookup) },
		})
	}
	return append(all, probesOfTwo(cfg)...)
}

// probeRedis reads from Redis as the cache does, under a name of its own, so that
// nothing of a running Portico is touched.
func probeRedis(ctx context.Context, cfg *Config, lookup func(string) (string, bool)) (string, error) {
	options, err := redisOptions(cfg, lookup)
	if err != nil {
		return "", err
	}
	options.Timeout = probeTimeout / 5
	tried, err := cache.New(nil, cache.Options{
		Tracker: "portico-check",
		Redis:   options,
		// Any secret does, and one that is given is not put into Redis.
		Secret: make([]byte, 32),
	})
	if err != nil {
		return "", err
	}
	err = tried.Probe(ctx)
	if err = errors.Join(err, tried.Close()); err != nil {
		return "", fmt.Errorf("asking Redis: %w", err)
	}
	return "answers", nil
}

// probeTracker asks a tracker for its version, as a Bugzilla-style server
// gives it to everybody (wire-facts, section 1). Where Portico finds out the
// dialect by itself it looks for /rest.cgi too, and so does this.
func probeTracker(ctx context.Context, t TrackerConfig) (string, error) {
	settings, err := t.TLS().Client()
	if err != nil {
		return "", err
	}
	transport := &http.Transport{TLSClientConfig: settings}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	ctx, cancel := context.WithTimeout(ctx, min(t.Timeout, probeTimeout))
	defer cancel()
	base := strings.TrimRight(t.URL, "/")
	answer, missing, err := askVersion(ctx, client, base+"/rest/version")
	if missing && t.Dialect == "auto" {
		if other, _, otherErr := askVersion(ctx, client, base+"/rest.cgi/version"); otherErr == nil {
			return other, nil
		}
	}
	return answer, err
}

// askVersion asks one address for the version. It tells apart that there is nothing.
func askVersion(ctx context.Context, client *http.Client, address string) (answer string, missing bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", false, fmt.Errorf("asking for the version: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", false, fmt.Errorf("asking for the version: %w", err)
	}
	defer response.Body.Close()
	answer, err = readVersion(response)
	return answer, err != nil && response.StatusCode == http.StatusNotFound, err
}

// noRedirect shows a redirect as the answer it is: a tracker that sends
// elsewhere is configured by the wrong address.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// longVersion is longer than any version is.
const longVersion = 100

// unprintable tells what an operator's terminal might obey instead of showing it.
func unprintable(c rune) bool { return !unicode.IsPrint(c) }

// readVersion reads the answer of /rest/version.
func readVersion(response *http.Response) (string, error) {
	if location := response.Header.Get("Location"); location != "" {
		return "", fmt.Errorf("the tracker redirects to %s: is that its address?", redactURL(location))
	}
	var answer struct {
		Version string `json:"version"`
	}
	err := json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&answer)
	switch {
	case err != nil:
		return "", fmt.Errorf("HTTP %d without JSON where a tracker tells its version: %w", response.StatusCode, err)
	case answer.Version == "":
		return "", errors.New("an answer without a version: this may be no tracker")
	case len(answer.Version) > longVersion || strings.ContainsFunc(answer.Version, unprintable):
		return "", errors.New("a version that is none: this may be no tracker")
	}
	return "version " + answer.Version, nil
}
