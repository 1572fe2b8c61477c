package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"portico/cache"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/transport"
	"portico/upstream/upstreamtest"
)

func keys(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../wire/testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// reference starts a reference tracker with the fixture.
func reference(t testing.TB, options tracker.Options) *tracker.Server {
	t.Helper()
	server := tracker.New(options)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func clientOf(t testing.TB, base *url.URL, via http.RoundTripper, dialect string) *bugzilla.Client {
	t.Helper()
	if via == nil {
		stack := transport.New(transport.Options{})
		t.Cleanup(stack.Close)
		via = stack
	}
	client, err := bugzilla.New(bugzilla.Options{
		URL: base, Dialect: dialect, Transport: via, Split: splitTo(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func cacheOver(t testing.TB, next upstream.Tracker) *cache.Cache {
	t.Helper()
	// A busy machine must not turn a hit into a miss.
	over := cache.New(next, cache.Options{Tracker: "main", Redis: cache.Redis{Timeout: time.Minute}})
	t.Cleanup(func() {
		if err := over.Close(); err != nil {
			t.Error(err)
		}
	})
	return over
}

// TestContract tries the shortest chain of trackers and the longest one.
func TestContract(t *testing.T) {
	all := keys(t)
	for name, start := range map[string]func(t *testing.T) upstream.Tracker{
		"client to reference": func(t *testing.T) upstream.Tracker {
			return clientOf(t, listenOn(t, reference(t, tracker.Options{})), nil, "auto")
		},
		"client to Portico to cache to client to reference": func(t *testing.T) upstream.Tracker {
			return clientOf(t, parsed(t, open(t, plan{cached: true}).base), nil, "bugzilla-5")
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstreamtest.TestTracker(t, func(t *testing.T) upstreamtest.Subject {
				return upstreamtest.Subject{Tracker: start(t), Keys: all}
			})
		})
	}
}
