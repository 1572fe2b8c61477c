package cache

import (
	"context"
	"strings"
	"testing"
	"time"

	"portico/mapping"
)

// longLived makes entries live long, in every state.
func longLived(o Options) Options {
	o.TTL, o.LocalTTL, o.StaleWhileRevalidate, o.StaleIfError = time.Hour, time.Hour, time.Hour, time.Hour
	return patient(o)
}

// TestWriteThatIsCarriedOutLater: its answer was lost, and the tracker shows the old
// text for a while. That is not kept for longer than a moment, in no process.
func TestWriteThatIsCarriedOutLater(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := longLived(on(s))
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
	clock.forward(uncertainTTL + time.Millisecond)
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

// TestUnknownOutcomeEnds: when the write cannot be carried out any more, answers live as
// long as ever.
func TestUnknownOutcomeEnds(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := longLived(on(s))
	options.FillTimeout = time.Minute
	c := openAt(t, f, options, clock.now)
	f.write = func() error { return errLost }
	_ = failing(c, "k")
	left := s.client.PTTL(context.Background(), c.keys.unknown).Val()
	if left <= 3*time.Minute || left > 4*time.Minute {
		t.Errorf("the outcome counts as unknown for %s", left)
	}
	clock.forward(4 * time.Minute)
	must(t, s.client.Del(context.Background(), c.keys.unknown).Err())
	if a := mustAsk(t, c, withKey("k")); a.cache.TTL < time.Minute {
		t.Errorf("the answer says %+v", a.cache)
	}
}

// TestUnknownOutcomeWithoutRedis: the process that wrote knows by itself, and Redis hears of
// it with the change.
func TestUnknownOutcomeWithoutRedis(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	options := longLived(on(s))
	options.Redis.Timeout = 0
	c := settled(t, openCache(t, f, options))
	s.kill()
	f.write = func() error { return errLost }
	_ = failing(c, "k")
	if a := mustAsk(t, c, withKey("k")); a.cache.TTL > uncertainTTL {
		t.Errorf("the answer says %+v", a.cache)
	}
	s.start()
	eventually(t, "redis knows", func() bool {
		return s.client.PTTL(context.Background(), c.keys.unknown).Val() > 0
	})
}

// TestUnknownOutcomeInAFullRedis: where there is no memory for this there is none for entries
// either, and the change itself gets through.
func TestUnknownOutcomeInAFullRedis(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := settled(t, openCache(t, f, longLived(on(s))))
	mustAsk(t, c, withKey("k"))
	must(t, s.client.ConfigSet(ctx, "maxmemory", "1").Err())
	f.write = func() error { f.version.Add(1); return errLost }
	_ = failing(c, "k")
	if c.Status().Undelivered || s.client.Exists(ctx, c.keys.generation).Val() != 0 {
		t.Errorf("a full redis keeps a change from being delivered: %+v", c.Status())
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) || a.cache.TTL > uncertainTTL {
		t.Errorf("the answer is %s, %+v", a.text, a.cache)
	}
}

// TestOutcomeOfAResponseIsKnown: an error that the tracker gives says that it has ended with the write, whatever it did; and what
// it refuses to an anonymous caller changed nothing.
func TestOutcomeOfAResponseIsKnown(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := settled(t, openCache(t, f, longLived(on(s))))
	mustAsk(t, c, withKey("k"))
	f.write = func() error { return &mapping.Error{Code: 51, Status: 404, Message: "no such flag type"} }
	_ = failing(c, "")
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Errorf("an anonymous caller emptied the cache: %+v", a.cache)
	}
	f.write = func() error { return &mapping.Error{Code: 100500, Status: 500, Message: "it fails"} }
	_ = failing(c, "k")
	if a := mustAsk(t, c, withKey("k")); a.cache.Hit || a.cache.TTL <= uncertainTTL {
		t.Errorf("after a failure that is over the answer says %+v", a.cache)
	}
}

// TestEntriesFromBeforeAWriteOfUnknownOutcome serve while the tracker fails, in every process and after several such writes,
// and no more once a write was carried out.
func TestEntriesFromBeforeAWriteOfUnknownOutcome(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	options := patient(on(s))
	options.StaleIfError = time.Hour
	c, other := openCache(t, f, options), openCache(t, f, options)
	mustAsk(t, c, withKey("k"))
	f.scripted(always(errRefused))
	f.write = func() error { return errLost }
	for range 3 {
		_ = failing(c, "k")
		for _, each := range []*Cache{c, other} {
			if a := mustAsk(t, each, withKey("k")); a.cache.Detail != detailIfError {
				t.Errorf("after a write of unknown outcome the answer says %+v", a.cache)
			}
		}
	}
	f.write = nil
	mustWrite(t, other, withKey("k"))
	for _, each := range []*Cache{c, other} {
		wantCode(t, ask(each, withKey("k")).err, errRefused.Code)
	}
}
