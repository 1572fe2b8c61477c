package cache

import (
	"context"
	"strings"
	"testing"
	"time"

	"portico/mapping"
)

// lasting makes answers live long, in all ways that there are.
func lasting(o Options) Options {
	o.TTL, o.LocalTTL, o.StaleWhileRevalidate, o.StaleIfError = time.Hour, time.Hour, time.Hour, time.Hour
	return patient(o)
}

// TestWriteThatIsCarriedOutLater: its answer was lost, and the tracker shows the old
// text for a while. That is not kept for longer than a moment, in no process.
func TestWriteThatIsCarriedOutLater(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := lasting(on(s))
	c, other := settled(t, openAt(t, f, options, clock.now)), settled(t, openAt(t, f, options, clock.now))
	f.write = func() error { return errLost }
	if failing(c, "k") == nil {
		t.Fatal("the write did not fail")
	}
	for _, each := range []*Cache{c, other} {
		mustAsk(t, each, withKey("k"))
		if a := mustAsk(t, each, withKey("k")); !a.cache.Hit {
			t.Errorf("nothing is kept for a moment: %+v", a.cache)
		}
	}
	f.version.Add(1)
	clock.forward(briefLife + time.Millisecond)
	for _, each := range []*Cache{c, other} {
		if a := mustAsk(t, each, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Errorf("after the write was carried out the read gives %s, %+v", a.text, a.cache)
		}
	}
	f.scripted(always(errRefused))
	clock.forward(time.Minute / 2)
	if a := mustAsk(t, other, withKey("k")); !a.cache.Stale || a.cache.Detail != detailIfError {
		t.Errorf("while the tracker is away the answer says %+v", a.cache)
	}
}

// TestDoubtEnds: when the write cannot be carried out any more, answers live as
// long as ever.
func TestDoubtEnds(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := lasting(on(s))
	options.FillTimeout = time.Minute
	c := openAt(t, f, options, clock.now)
	f.write = func() error { return errLost }
	_ = failing(c, "k")
	left := s.client.PTTL(context.Background(), c.keys.doubt()).Val()
	if left <= 3*time.Minute || left > 4*time.Minute {
		t.Errorf("the doubt is known for %s", left)
	}
	clock.forward(4 * time.Minute)
	must(t, s.client.Del(context.Background(), c.keys.doubt()).Err())
	if a := mustAsk(t, c, withKey("k")); a.cache.TTL < time.Minute {
		t.Errorf("the answer says %+v", a.cache)
	}
}

// TestDoubtWithoutRedis: the process that wrote knows by itself, and Redis hears of
// it with the change.
func TestDoubtWithoutRedis(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	options := lasting(on(s))
	options.Redis.Timeout = 0
	c := settled(t, openCache(t, f, options))
	s.kill()
	f.write = func() error { return errLost }
	_ = failing(c, "k")
	if a := mustAsk(t, c, withKey("k")); a.cache.TTL > briefLife {
		t.Errorf("the answer says %+v", a.cache)
	}
	s.start()
	eventually(t, "redis knows", func() bool {
		return s.client.PTTL(context.Background(), c.keys.doubt()).Val() > 0
	})
}

// TestDoubtOfWhoMayNotAsk: an account that may not ask how long a key lives warns of its
// writes all the same.
func TestDoubtOfWhoMayNotAsk(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	must(t, s.client.Do(ctx, "ACL", "SETUSER", "curt", "on", ">pass word", "~portico:*", "&portico:*", "+@all", "-pttl").Err())
	options := lasting(on(s))
	options.Redis.Username, options.Redis.Password = "curt", "pass word"
	c := settled(t, openCache(t, f, options))
	f.write = func() error { return errLost }
	_ = failing(c, "k")
	if left := s.client.PTTL(ctx, c.keys.doubt()).Val(); left <= 0 || c.Status().Undelivered {
		t.Errorf("the doubt is known for %s, %+v", left, c.Status())
	}
	mustAsk(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Errorf("nothing is kept any more: %+v", a.cache)
	}
}

// TestDoubtInAFullRedis: where there is no room for a doubt there is none for answers
// either, and the change itself gets through.
func TestDoubtInAFullRedis(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := settled(t, openCache(t, f, lasting(on(s))))
	mustAsk(t, c, withKey("k"))
	must(t, s.client.ConfigSet(ctx, "maxmemory", "1").Err())
	f.write = func() error { f.version.Add(1); return errLost }
	_ = failing(c, "k")
	if c.Status().Undelivered || s.client.Exists(ctx, c.keys.generation()).Val() != 0 {
		t.Errorf("a full redis keeps a change from being delivered: %+v", c.Status())
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) || a.cache.TTL > briefLife {
		t.Errorf("the answer is %s, %+v", a.text, a.cache)
	}
}

// TestNoDoubtOfWhatIsOver: an error that the tracker gives says that it has ended with the write, whatever it did; and what
// it refuses to somebody without a credential changed nothing.
func TestNoDoubtOfWhatIsOver(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := settled(t, openCache(t, f, lasting(on(s))))
	mustAsk(t, c, withKey("k"))
	f.write = func() error { return &mapping.Error{Code: 51, Status: 404, Message: "no such flag type"} }
	_ = failing(c, "")
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Errorf("nobody emptied the cache: %+v", a.cache)
	}
	f.write = func() error { return &mapping.Error{Code: 100500, Status: 500, Message: "it fails"} }
	_ = failing(c, "k")
	if a := mustAsk(t, c, withKey("k")); a.cache.Hit || a.cache.TTL <= briefLife {
		t.Errorf("after a failure that is over the answer says %+v", a.cache)
	}
}
