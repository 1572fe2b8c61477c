package cache

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/singleflight"
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
	eventually(t, "nobody is asking", func() bool { return len(leases(t, a)) == 0 })
	clock.forward(90 * time.Second)
	return a, b
}

// askStale asks for the answer that is stale, and waits until it was replaced or could not be.
func askStale(t *testing.T, c *Cache) {
	t.Helper()
	caller := withKey("k")
	k := key{scope: c.credentialScope(&caller), product: "P"}
	h := c.local.get(k, c.generation.present(), c.now())
	if got := mustAsk(t, c, caller); !got.cache.Stale {
		t.Errorf("the answer says %+v", got.cache)
	}
	name := "refresh" + c.keys.plain(k) + strconv.FormatUint(h.seen.turn, 10)
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
		eventually(t, "nobody is asking", func() bool { return len(leases(t, c)) == 0 })
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

// TestGroupsOfASickTracker: of one that is known to be sick nothing is waited for, and what
// it said meanwhile is not overwritten by what was known before.
func TestGroupsOfASickTracker(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	c, _ := memberOf(t, f, clock.now)
	c.sick.mark(clock.now())
	caller := withKey("k")
	own := c.credentialScope(&caller)
	before, _ := c.groups.cache.GetIfPresent(own)
	said := remembered{scope: own, until: clock.now().Add(time.Hour), last: clock.now().Add(time.Hour)}
	c.groups.cache.Set(own, said)
	least := groupsPatience
	for range 3 {
		begun := time.Now()
		c.meanwhile(t.Context(), make(chan singleflight.Result), own, before)
		least = min(least, time.Since(begun))
	}
	if least >= groupsPatience {
		t.Errorf("a sick tracker was waited for at least %s", least)
	}
	if known, _ := c.groups.cache.GetIfPresent(own); known != said {
		t.Errorf("what was said meanwhile is lost: %+v", known)
	}
}
