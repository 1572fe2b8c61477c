package cache

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair gives two processes on one Redis whose local levels live long.
func pair(t *testing.T, f *fakeTracker, s *server) (a, b *Cache) {
	t.Helper()
	options := patient(on(s))
	options.LocalTTL = time.Hour
	options.TTL = time.Hour
	return settled(t, openCache(t, f, options)), settled(t, openCache(t, f, options))
}

func TestChangeReachesTheOtherLocalLevel(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	a, b := pair(t, f, s)
	for _, change := range []func() error{
		func() error { mustWrite(t, a, withKey("k")); return nil },
		func() error { f.version.Add(1); return a.Purge(context.Background(), "P") },
	} {
		mustAsk(t, b, withKey("k"))
		if got := mustAsk(t, b, withKey("k")); got.cache.Detail != "local" {
			t.Fatalf("the answer says %+v", got.cache)
		}
		must(t, change())
		eventually(t, "the other process knows", func() bool {
			return strings.Contains(mustAsk(t, b, withKey("k")).text, f.now())
		})
	}
}

// TestLostMessageIsBoundedByTheLocalTTL: the change is made and not published.
func TestLostMessageIsBoundedByTheLocalTTL(t *testing.T) {
	s, f, ctx, clock := startServer(t), &fakeTracker{}, context.Background(), &clock{}
	options := patient(on(s))
	options.LocalTTL = time.Second
	c := settled(t, openAt(t, f, options, clock.now))
	mustAsk(t, c, withKey("k"))
	f.version.Add(1)
	must(t, s.client.Set(ctx, c.keys.generation, tokenAt(time.Now().Add(time.Minute)).text, 0).Err())
	if a := mustAsk(t, c, withKey("k")); a.cache.Detail != "local" && !strings.Contains(a.text, f.now()) {
		t.Fatalf("the answer says %+v", a.cache)
	}
	clock.forward(time.Second)
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after local_ttl the read gives %s, %+v", a.text, a.cache)
	}
}

// TestChangeDuringALostSubscription: what was missed is noticed when the process
// hears again.
func TestChangeDuringALostSubscription(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	a, b := pair(t, f, s)
	must(t, s.client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err())
	eventually(t, "the subscription is lost", func() bool { return !b.Status().Subscribed })
	mustAsk(t, b, withKey("k"))
	mustWrite(t, a, withKey("k")) // the other process is not told
	eventually(t, "the other process knows", func() bool {
		return strings.Contains(mustAsk(t, b, withKey("k")).text, f.now())
	})
}

// TestClocksApart: a process with a fast clock and one with a right one follow each
// other's changes.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	s, f, ahead := startServer(t), &fakeTracker{}, &clock{}
	ahead.forward(time.Hour)
	a, b := openAt(t, f, patient(on(s)), ahead.now), openCache(t, f, patient(on(s)))
	callers := []*Cache{a, b, a, a, b, b, a, b}
	for _, c := range callers {
		mustWrite(t, c, withKey("k"))
		for _, reader := range []*Cache{a, b, a, b} {
			if got := mustAsk(t, reader, withKey("k")); !strings.Contains(got.text, f.now()) {
				t.Fatalf("the read gives %s, %+v", got.text, got.cache)
			}
		}
	}
}

// TestEntryFromTheFuture: what a process with a fast clock stored, this process among them before its clock was set right, is
// dead in both levels.
func TestEntryFromTheFuture(t *testing.T) {
	s, f, ahead := startServer(t), &fakeTracker{}, &clock{}
	ahead.forward(time.Hour)
	options := patient(on(s))
	options.LocalTTL = 2 * time.Hour
	a, b := openAt(t, f, options, ahead.now), openCache(t, f, options)
	mustAsk(t, a, withKey("k"))
	f.version.Add(1)
	if got := mustAsk(t, b, withKey("k")); got.cache.Hit || !strings.Contains(got.text, f.now()) {
		t.Errorf("the read gives %s, %+v", got.text, got.cache)
	}
	ahead.forward(-time.Hour)
	if got := mustAsk(t, a, withKey("k")); !strings.Contains(got.text, f.now()) {
		t.Errorf("after the clock stepped back the read gives %s, %+v", got.text, got.cache)
	}
	ahead.forward(maxClockSkew / 2)
	if got := mustAsk(t, b, withKey("k")); !got.cache.Hit {
		t.Errorf("clocks that are nearly the same keep entries from being shared: %+v", got.cache)
	}
}

// TestSlowClockComesAfterAFastOne: who changes something without having seen the
// token of a faster clock makes a second one that comes after it.
func TestSlowClockComesAfterAFastOne(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, patient(on(s)))
	before := tokenAt(time.Now().Add(time.Hour))
	must(t, s.client.Set(ctx, c.keys.generation, before.text, 0).Err())
	must(t, c.Purge(ctx, ""))
	after, ok := parseToken(s.client.Get(ctx, c.keys.generation).Val())
	if !ok || after.at <= before.at {
		t.Errorf("%q follows %q", after.text, before.text)
	}
}

// TestForeignGenerationDuringAnUndeliveredChange: a newer token of another process
// does not make up for a change that Redis was not told of.
func TestForeignGenerationDuringAnUndeliveredChange(t *testing.T) {
	s := startServer(t)
	c := openCache(t, &fakeTracker{}, on(s))
	g := c.generation
	g.mu.Lock()
	g.changes++
	g.mu.Unlock()
	if _, err := g.accept(tokenAt(time.Now().Add(time.Hour)).text); err == nil {
		t.Error("it is believed")
	}
	must(t, g.deliver(context.Background()))
	if _, err := g.accept(tokenAt(time.Now().Add(2 * time.Hour)).text); err != nil {
		t.Error("after delivery it is not believed: ", err)
	}
}

// tokenAt is the generation that a process makes at a time.
func tokenAt(at time.Time) token {
	t, _ := parseToken(strconv.FormatInt(at.UnixMilli(), 10) + "-" + rand.Text())
	return t
}

func TestLostSecretIsPutBack(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
	old := s.client.Get(ctx, c.keys.secret).Val()
	must(t, s.client.FlushAll(ctx).Err())
	eventually(t, "the secret is back", func() bool { return s.client.Get(ctx, c.keys.secret).Val() == old })
	must(t, s.client.Set(ctx, c.keys.secret, strings.Repeat("ab", 32), 0).Err())
	eventually(t, "another secret is adopted", func() bool {
		return c.shared.hasher.Load().secret == strings.Repeat("\xab", 32)
	})
	must(t, s.client.Set(ctx, c.keys.secret, "short", 0).Err())
	if err := c.shared.check(ctx); err == nil {
		t.Error("a bad secret is taken")
	}
}

func TestObserverIsTold(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	var mu sync.Mutex
	told := map[string]int{}
	tell := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told[what]++
	}
	options := on(s)
	options.LocalTTL = time.Hour
	options.Observer = Observer{
		Read:       func(outcome string) { tell("read " + outcome) },
		Fill:       func(time.Duration, error) { tell("fill") },
		Redis:      func(operation string, _ time.Duration, _ error) { tell("redis " + operation) },
		RedisState: func(available bool) { tell(map[bool]string{true: "back", false: "away"}[available]) },
		Change:     func(delivered bool) { tell(map[bool]string{true: "delivered", false: "undelivered"}[delivered]) },
	}
	c := settled(t, openCache(t, f, options))
	lacking := func(all ...string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(all), func(what string) bool { return told[what] > 0 })
	}
	// Redis may answer too late on a slow machine, and what follows from its answer is not done then: so all is done until it is told.
	toldOf := func(do func(), all ...string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); len(lacking(all...)) > 0; do() {
			if time.Now().After(end) {
				t.Fatalf("never told: %q", lacking(all...))
			}
		}
	}
	twice := func() { mustAsk(t, c, withKey("k")); mustAsk(t, c, withKey("k")); mustWrite(t, c, withKey("k")) }
	toldOf(twice, "read miss", "read local", "fill", "redis read", "redis lease", "redis pending", "redis store", "redis change",
		"redis publish", "redis check", "delivered")
	s.kill()
	toldOf(twice, "away", "undelivered")
	s.start()
	toldOf(func() { time.Sleep(5 * time.Millisecond) }, "back")
}
