package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

// TestCutOffReplicaAsksTheTracker: a replica that Redis does not tell of the writes of others uses nothing for longer than
// local_ttl after Redis last confirmed that there were none.
func TestCutOffReplicaAsksTheTracker(t *testing.T) {
	t.Parallel()
	redis := process.FreeAddress(t)
	process.Redis(t, redis)
	_, base := startTracker(t, process.FreeAddress(t))
	relay := process.StartRelay(t, redis)
	other := startFacade(t, base, "CACHE_REDIS=redis://"+redis)
	cutOff := startFacade(t, base, "CACHE_REDIS=redis://"+relay.Address, "CACHE_LOCAL_TTL=3s", "CACHE_TTL=10m")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "dev"}
	for _, f := range []*facade{other, cutOff} {
		process.Eventually(t, "a read is answered from the cache", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	}
	relay.Silent.Store(true)
	cut := time.Now()
	// The replica is heard to be cut off, and has asked the tracker once more.
	process.Eventually(t, "the tracker is asked", func() bool { return cutOff.do(t, read).ok(t, 200).cacheStatus() != "hit" })
	other.put(t, "editor", "/rest/flag_type/1", `{"description":"new"}`).ok(t, 200)
	for {
		asked := time.Now()
		got := cutOff.do(t, read).ok(t, 200)
		if got.field(t, "1", "description") == "new" {
			break
		}
		if asked.Sub(cut) > 10*time.Second {
			t.Fatalf("%v after it was cut off the replica returns the old value, %q", asked.Sub(cut), got.header.Get("Cache-Status"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestUnknownWritesKeepStaleIfError: while the tracker's database is away, writes of unknown outcome do not take from readers what
// was stored for that case. After the outage it is read anew, and after a write that was carried out it is used no more.
func TestUnknownWritesKeepStaleIfError(t *testing.T) {
	t.Parallel()
	redis := process.FreeAddress(t)
	process.Redis(t, redis)
	s := startScripted(t)
	env := []string{"CACHE_REDIS=redis://" + redis, "TIMEOUTS_REDIS=10s", "TIMEOUTS_CONNECT=10s"}
	one, two := startFacade(t, s.base, env...), startFacade(t, s.base, env...)
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "granter"}
	old := ""
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "a read is answered from the cache", func() bool {
			got := f.do(t, read).ok(t, 200)
			old = string(got.body)
			return got.cacheStatus() == "hit"
		})
	}
	s.failing.Store(true)
	for range 3 {
		got := one.put(t, "editor", "/rest/flag_type/1", `{"description":"lost"}`)
		if reason := got.header.Get("Portico-Error"); !strings.Contains(reason, "outcome=unknown") {
			t.Fatalf("the write is answered with %d, %q", got.status, reason)
		}
		for _, f := range []*facade{one, two} {
			process.Eventually(t, "reads are answered during the outage, and say so", func() bool {
				got := f.do(t, read).ok(t, 200)
				if string(got.body) != old {
					t.Fatalf("the read gives %d %.200s", got.status, got.body)
				}
				return strings.Contains(got.header.Get("Cache-Status"), "stale-if-error")
			})
		}
	}
	s.failing.Store(false)
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "entries are refreshed", func() bool {
			return !strings.Contains(f.do(t, read).ok(t, 200).header.Get("Cache-Status"), "stale-if-error")
		})
	}
	one.put(t, "editor", "/rest/flag_type/1", `{"description":"known"}`).ok(t, 200)
	s.failing.Store(true)
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "what was stored before a write that was carried out is used no more", func() bool {
			return f.do(t, read).status >= 500
		})
	}
}
