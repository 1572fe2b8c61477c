package cache

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"
)

// staleInBoth gives two processes with an answer in their local levels that is stale now.
func staleInBoth(t *testing.T, f *fakeTracker) (a, b *Cache) {
	t.Helper()
	clock := &clock{}
	options := stalest
	options.LocalTTL, options.Lease, options.Redis = 24*time.Hour, time.Hour, on(startServer(t)).Redis
	a, b = settled(t, openAt(t, f, patient(options), clock.now)), settled(t, openAt(t, f, patient(options), clock.now))
	mustAsk(t, a, withKey("k"))
	mustAsk(t, b, withKey("k"))
	wantCalls(t, f, 1)
	eventually(t, "no lease is held", func() bool { return len(leases(t, a)) == 0 })
	clock.forward(90 * time.Second)
	return a, b
}

// askStale asks for the answer that is stale, and waits until it was replaced or could not be.
func askStale(t *testing.T, c *Cache) {
	t.Helper()
	caller := withKey("k")
	k := key{scope: c.credentialScope(&caller), product: "P"}
	h, _ := c.local.GetIfPresent(k)
	if got := mustAsk(t, c, caller); !got.cache.Stale {
		t.Errorf("the answer says %+v", got.cache)
	}
	name := "refresh" + c.keys.value(k) + strconv.FormatUint(h.seen.sequence, 10)
	<-c.fills.DoChan(name, func() (any, error) { return nil, nil })
}

func leases(t *testing.T, c *Cache) []string {
	t.Helper()
	names, err := c.remote.client.Keys(context.Background(), c.keys.prefix+"l:*").Result()
	must(t, err)
	return names
}

// TestRenewedElsewhere: what another process has renewed is not asked for once more.
func TestRenewedElsewhere(t *testing.T) {
	f := &fakeTracker{}
	a, b := staleInBoth(t, f)
	f.version.Add(1)
	for _, c := range []*Cache{a, b} {
		askStale(t, c)
		if got := mustAsk(t, c, withKey("k")); got.cache.Stale || !strings.Contains(got.text, f.now()) {
			t.Errorf("the answer is %s, %+v", got.text, got.cache)
		}
		eventually(t, "no lease is held", func() bool { return len(leases(t, c)) == 0 })
	}
	wantCalls(t, f, 2)
}

// TestSickTrackerIsAskedByOneProcess: the lease of one that could not renew an answer stays.
func TestSickTrackerIsAskedByOneProcess(t *testing.T) {
	f := &fakeTracker{}
	a, b := staleInBoth(t, f)
	f.scripted(always(errRefused))
	askStale(t, a)
	wantCalls(t, f, 2)
	if got := leases(t, a); len(got) != 1 {
		t.Errorf("there are the leases %q", got)
	}
	askStale(t, b)
	wantCalls(t, f, 2)
	time.Sleep(20 * time.Millisecond) // for a lease that is given back beside the reads
	if got := leases(t, a); len(got) != 1 {
		t.Errorf("in the end there are the leases %q", got)
	}
}

// TestGroupsAreKnownForSoLong: who shared goes on as long as old answers are given, and no
// longer, though the tracker answers all but the question for groups.
func TestGroupsAreKnownForSoLong(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	c, fate := memberOf(t, f, clock.now)
	away := func() error { return errRefused }
	fate.Store(&away)
	caller := withKey("k")
	own := c.credentialScope(&caller)
	for _, each := range []struct {
		after  time.Duration
		shares bool
	}{{30 * time.Minute, true}, {30 * time.Minute, true}, {10 * time.Minute, false}, {time.Minute, false}} {
		clock.forward(each.after)
		if shares := c.sharing(t.Context(), &caller, own) != own; shares != each.shares {
			t.Errorf("after another %s the caller shares: %t", each.after, shares)
		}
	}
}

// TestGroupsOfAFailingTracker: a read does not wait for one that is known to fail.
func TestGroupsOfAFailingTracker(t *testing.T) {
	f, clock, end := &fakeTracker{}, &clock{}, make(chan struct{})
	c, fate := memberOf(t, f, clock.now)
	hung := func() error { <-end; return errRefused }
	fate.Store(&hung)
	defer close(end)
	clock.forward(5 * time.Minute)
	c.setFailing(true)
	caller := withKey("k")
	own, least := c.credentialScope(&caller), groupsPatience
	for range 3 {
		begun := time.Now()
		if c.sharing(t.Context(), &caller, own) == own {
			t.Error("the groups that were known are lost")
		}
		least = min(least, time.Since(begun))
	}
	if least >= groupsPatience {
		t.Errorf("a failing tracker was waited for at least %s", least)
	}
}
