package e2e

import (
	"testing"
	"time"

	"portico/cache"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/upstreamtest"
)

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
	all := keys()
	for name, start := range map[string]func(t *testing.T) upstream.Tracker{
		"client to reference": func(t *testing.T) upstream.Tracker {
			return process.Client(t, process.Listen(t, process.Reference(t, tracker.Options{})), nil, "auto")
		},
		"client to Portico to cache to client to reference": func(t *testing.T) upstream.Tracker {
			return process.Client(t, parsed(t, open(t, plan{cached: true}).base), nil, "bugzilla-5")
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstreamtest.TestTracker(t, func(t *testing.T) upstreamtest.Subject {
				return upstreamtest.Subject{Tracker: start(t), Keys: all}
			})
		})
	}
}
