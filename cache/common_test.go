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
)

// openedCommon is a Common that is closed with the test.
func openedCommon(t *testing.T, options Options) *Common {
	t.Helper()
	common, err := OpenCommon(options)
	must(t, err)
	t.Cleanup(func() { must(t, common.Close()) })
	return common
}

// TestCacheFollowsAnother: it goes on with the answers of the one before, and a
// write that ends in the former one counts for it.
func TestCacheFollowsAnother(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		options.LocalTTL = time.Minute
		options = patient(options)
		f, common := &fakeTracker{}, openedCommon(t, options)
		options.Common = common
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
			_, _ = former.UpdateFlagTypes(context.Background(), withKey("k"), mapping.FlagTypeUpdate{})
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
	way := startChaosProxy(t, s.addr)
	options := on(s)
	options.Redis.Addrs = []string{way.addr}
	former := openedCommon(t, options)
	options.Common = former
	c, other := openCache(t, f, options), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	way.cut(true)
	mustWrite(t, c, withKey("k"))
	if !former.generation.undelivered() {
		t.Fatal("the change counts as delivered")
	}
	present := openedCommon(t, on(s))
	present.join(&c.options)
	former.Hand(present)
	must(t, c.Close())
	eventually(t, "the other process knows", func() bool {
		return strings.Contains(mustAsk(t, other, withKey("k")).text, f.now())
	})
	f.version.Add(1)
	_ = former.change(context.Background(), 0) // which cannot say so itself
	if a := mustAsk(t, other, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a change in the former one the read gives %s, %+v", a.text, a.cache)
	}
}

// TestEveryUserHearsOfRedis: also one whose follower comes to nothing in the end.
func TestEveryUserHearsOfRedis(t *testing.T) {
	s := startServer(t)
	options := on(s)
	common := openedCommon(t, options)
	var away [2]atomic.Bool
	for i := range away {
		own := options
		own.Common, own.Observer.RedisState = common, func(available bool) { away[i].Store(!available) }
		defer func(c *Cache) { must(t, c.Close()) }(settled(t, openCache(t, &fakeTracker{}, own)))
	}
	s.kill()
	eventually(t, "both are told that it is away", func() bool { return away[0].Load() && away[1].Load() })
	s.start()
	eventually(t, "both are told that it is back", func() bool { return !away[0].Load() && !away[1].Load() })
}

// TestFits: only what leads to the same answers in the same way is gone on with.
func TestFits(t *testing.T) {
	usual := func() Options {
		pool := x509.NewCertPool()
		return Options{Tracker: "main", Address: "a", Redis: Redis{Addrs: []string{"h:1"}, TLS: &tls.Config{RootCAs: pool}}}
	}
	common := openedCommon(t, usual())
	if !common.Fits(usual()) {
		t.Error("the same does not fit")
	}
	for name, change := range map[string]func(*Options){
		"tracker":  func(o *Options) { o.Tracker = "other" },
		"address":  func(o *Options) { o.Address = "b" },
		"server":   func(o *Options) { o.Redis.Addrs = []string{"h:2"} },
		"embedded": func(o *Options) { o.Redis = Redis{} },
		"database": func(o *Options) { o.Redis.DB = 1 },
		"password": func(o *Options) { o.Redis.Password = "p" },
		"name":     func(o *Options) { o.Redis.TLS.ServerName = "s" },
		"roots":    func(o *Options) { o.Redis.TLS.RootCAs = nil },
		"proof":    func(o *Options) { o.Redis.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{{1}}}} },
	} {
		options := usual()
		if change(&options); common.Fits(options) {
			t.Errorf("another %s fits", name)
		}
	}
}
