package cache

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	processes "portico/test/process"
)

// pair gives two processes on one Redis whose local levels live long.
func pair(t *testing.T, f *fakeTracker, s *server) (a, b *Cache) {
	t.Helper()
	options := on(s)
	options.LocalTTL = time.Hour
	options.TTL = time.Hour
	return settled(t, openCache(t, f, options)), settled(t, openCache(t, f, options))
}

func TestChangeReachesTheOtherLocalLevel(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	a, b := pair(t, f, s)
	for _, change := range []func() error{
		func() error { mustWrite(t, a); return nil },
		func() error { f.version.Add(1); return a.Purge(context.Background(), "P") },
	} {
		mustAsk(t, b, withKey("k"))
		if got := mustAsk(t, b, withKey("k")); got.cache.Detail != "local" {
			t.Fatalf("the answer says %+v", got.cache)
		}
		must(t, change())
		eventuallyNow(t, f, b)
	}
}

// TestLostMessageIsBoundedByTheLocalTTL: the change is made and not published.
func TestLostMessageIsBoundedByTheLocalTTL(t *testing.T) {
	s, f, ctx, clock := startServer(t), &fakeTracker{}, context.Background(), &clock{}
	options := on(s)
	options.LocalTTL = time.Second
	c := settled(t, openAt(t, f, options, clock.now))
	mustAsk(t, c, withKey("k"))
	f.version.Add(1)
	must(t, s.client.Set(ctx, c.keys.generation, tokenAt(time.Now().Add(time.Minute)).text, 0).Err())
	if a := mustAsk(t, c, withKey("k")); a.cache.Detail != "local" && !strings.Contains(a.text, f.now()) {
		t.Fatalf("the answer says %+v", a.cache)
	}
	clock.forward(time.Second)
	wantNow(t, f, c, "k", "after local_ttl")
}

// TestChangeDuringALostSubscription: what was missed is noticed when the process
// hears again.
func TestChangeDuringALostSubscription(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	a, b := pair(t, f, s)
	must(t, s.client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err())
	eventually(t, "the subscription is lost", func() bool { return !b.Status().Subscribed })
	mustAsk(t, b, withKey("k"))
	mustWrite(t, a) // the other process is not told
	eventuallyNow(t, f, b)
}

// TestClocksApart: a process with a fast clock and one with a right one follow each
// other's changes.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	s, f, ahead := startServer(t), &fakeTracker{}, &clock{}
	ahead.forward(time.Hour)
	a, b := openAt(t, f, on(s), ahead.now), openCache(t, f, on(s))
	callers := []*Cache{a, b, a, a, b, b, a, b}
	for _, c := range callers {
		mustWrite(t, c)
		for _, reader := range []*Cache{a, b, a, b} {
			wantNow(t, f, reader, "k", "after a write")
		}
	}
}

// TestEntryFromTheFuture: what a process with a fast clock stored, this process among them before its clock was set right, is
// dead in both levels.
func TestEntryFromTheFuture(t *testing.T) {
	s, f, ahead := startServer(t), &fakeTracker{}, &clock{}
	ahead.forward(time.Hour)
	options := on(s)
	options.LocalTTL = 2 * time.Hour
	a, b := openAt(t, f, options, ahead.now), openCache(t, f, options)
	mustAsk(t, a, withKey("k"))
	f.version.Add(1)
	if got := mustAsk(t, b, withKey("k")); got.cache.Hit || !strings.Contains(got.text, f.now()) {
		t.Errorf("the read gives %s, %+v", got.text, got.cache)
	}
	ahead.forward(-time.Hour)
	wantNow(t, f, a, "k", "after the clock stepped back")
	ahead.forward(maxClockSkew / 2)
	wantHit(t, b, "k", "clocks that are nearly the same keep entries from being shared")
}

// TestSlowClockComesAfterAFastOne: who changes something without having seen the
// token of a faster clock makes a second one that comes after it.
func TestSlowClockComesAfterAFastOne(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
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
	twice := func() { mustAsk(t, c, withKey("k")); mustAsk(t, c, withKey("k")); mustWrite(t, c) }
	toldOf(twice, "read miss", "read local", "fill", "redis read", "redis lease", "redis pending", "redis store", "redis change",
		"redis publish", "redis check", "delivered")
	s.kill()
	toldOf(twice, "away", "undelivered")
	s.start()
	toldOf(func() { time.Sleep(5 * time.Millisecond) }, "back")
}

// openedShared is a Shared that is closed with the test.
func openedShared(t *testing.T, options Options) *Shared {
	t.Helper()
	options.Redis.Timeout = cmp.Or(options.Redis.Timeout, 2*time.Second)
	shared := OpenShared(allObserved(options))
	t.Cleanup(func() { must(t, shared.Close()) })
	return shared
}

// TestCacheFollowsAnother: it goes on with the answers of the one before, and a
// write that ends in the former one counts for it.
func TestCacheFollowsAnother(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		options.LocalTTL = time.Minute
		f, shared := &fakeTracker{}, openedShared(t, options)
		options.Shared = shared
		former := settled(t, openCache(t, f, options))
		mustAsk(t, former, withKey("k"))
		present := openCache(t, f, options)
		if a := mustAsk(t, present, withKey("k")); a.cache.Detail != detailRedis {
			t.Errorf("the one that follows says %+v", a.cache)
		}
		begun, end, written := make(chan struct{}), make(chan struct{}), make(chan struct{})
		f.write = func() error { close(begun); <-end; f.version.Add(1); return nil }
		go func() {
			defer close(written)
			_ = update(context.Background(), former, "k")
		}()
		<-begun
		mustAsk(t, present, withKey("k"))
		close(end)
		<-written
		must(t, former.Close())
		wantNow(t, f, present, "k", "after a write in the former one")
	})
}

// TestPendingChangeIsHandedOn: a change that could not be delivered outlives the
// cache that made it, also where the way to Redis is another one afterwards.
func TestPendingChangeIsHandedOn(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	way := processes.StartRelay(t, s.addr)
	options := on(s)
	options.Redis.Addrs = []string{way.Address}
	former := openedShared(t, options)
	options.Shared = former
	c, other := openCache(t, f, options), openCache(t, f, on(s))
	mustAsk(t, other, withKey("k"))
	way.Down(true)
	mustWrite(t, c)
	if !former.generation.undelivered() {
		t.Fatal("the change counts as delivered")
	}
	present := openedShared(t, on(s))
	former.ForwardChanges(present)
	must(t, c.Close())
	eventuallyNow(t, f, other)
	f.version.Add(1)
	_ = former.change(context.Background(), 0, true) // which cannot say so itself
	wantNow(t, f, other, "k", "after a change in the former one")
}

// TestFits: only what leads to the same answers in the same way is gone on with.
func TestFits(t *testing.T) {
	addr, secured := freeAddr(t), &tls.Config{RootCAs: x509.NewCertPool()}
	usual := func() Options {
		return Options{Tracker: "main", Address: "a", Redis: Redis{Addrs: []string{addr}, TLS: secured, Timeout: time.Second}}
	}
	shared := openedShared(t, usual())
	if !shared.Fits(usual()) {
		t.Error("the same does not fit")
	}
	for name, change := range map[string]func(*Options){
		"tracker":  func(o *Options) { o.Tracker = "other" },
		"address":  func(o *Options) { o.Address = "b" },
		"server":   func(o *Options) { o.Redis.Addrs = []string{"h:2"} },
		"embedded": func(o *Options) { o.Redis = Redis{} },
		"database": func(o *Options) { o.Redis.DB = 1 },
		"password": func(o *Options) { o.Redis.Password = "p" },
		"TLS":      func(o *Options) { o.Redis.TLS = secured.Clone() },
		"no TLS":   func(o *Options) { o.Redis.TLS = nil },
	} {
		options := usual()
		if change(&options); shared.Fits(options) {
			t.Errorf("another %s fits", name)
		}
	}
}
