package cache

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	processes "portico/test/process"
	"portico/upstream"
)

// openedShared is a Shared that is closed with the test.
func openedShared(t *testing.T, options Options) *Shared {
	t.Helper()
	shared := OpenShared(allObserved(options))
	t.Cleanup(func() { must(t, shared.Close()) })
	return shared
}

// TestCacheFollowsAnother: it goes on with the answers of the one before, and a
// write that ends in the former one counts for it.
func TestCacheFollowsAnother(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		options.LocalTTL = time.Minute
		options = patient(options)
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
			_, _ = former.Do(context.Background(), withKey("k"), upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{}})
		}()
		<-begun
		mustAsk(t, present, withKey("k"))
		close(end)
		<-written
		must(t, former.Close())
		if a := mustAsk(t, present, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Errorf("after a write in the former one the read gives %s, %+v", a.text, a.cache)
		}
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
	c, other := openCache(t, f, options), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	way.Down(true)
	mustWrite(t, c, withKey("k"))
	if !former.generation.undelivered() {
		t.Fatal("the change counts as delivered")
	}
	present := openedShared(t, on(s))
	former.ForwardChanges(present)
	must(t, c.Close())
	eventually(t, "the other process knows", func() bool {
		return strings.Contains(mustAsk(t, other, withKey("k")).text, f.now())
	})
	f.version.Add(1)
	_ = former.change(context.Background(), 0, true) // which cannot say so itself
	if a := mustAsk(t, other, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a change in the former one the read gives %s, %+v", a.text, a.cache)
	}
}

// TestNewestUserObservesRedis: the newest cache that is open gets the changes of the state of Redis.
func TestNewestUserObservesRedis(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	options := on(s)
	shared := openedShared(t, options)
	var away [2]atomic.Bool
	var users [2]*Cache
	for i := range away {
		own := options
		own.Shared, own.Observer.RedisState = shared, func(available bool) { away[i].Store(!available) }
		users[i] = settled(t, openCache(t, &fakeTracker{}, own))
	}
	s.kill()
	eventually(t, "the newest cache observes that Redis is unreachable", away[1].Load)
	must(t, users[1].Close())
	s.start()
	eventually(t, "Redis is reachable again", shared.remote.breaker.allows)
	s.kill()
	eventually(t, "the cache before it observes that Redis is unreachable", away[0].Load)
}

// TestFits: only what leads to the same answers in the same way is gone on with.
func TestFits(t *testing.T) {
	addr, secured := freeAddr(t), &tls.Config{RootCAs: x509.NewCertPool()}
	usual := func() Options {
		return Options{Tracker: "main", Address: "a", Redis: Redis{Addrs: []string{addr}, TLS: secured}}
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
