package cache

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestDatabasesOfOneServerAreApart: pub/sub knows no databases, so what happens in
// one must not reach who works in another.
func TestDatabasesOfOneServerAreApart(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := patient(on(s))
	options.LocalTTL = time.Hour
	one := settled(t, openCache(t, f, options))
	options.Redis.DB = 1
	two := settled(t, openCache(t, f, options))
	mustAsk(t, one, withKey("k"))
	mustAsk(t, two, withKey("k"))
	before := s.client.Get(ctx, one.keys.generation).Val()
	for range 3 {
		mustWrite(t, two, withKey("k"))
	}
	time.Sleep(100 * time.Millisecond) // for messages of the other database
	if a := mustAsk(t, one, withKey("k")); a.cache.Detail != detailLocal {
		t.Errorf("after a change in another database the answer says %+v", a.cache)
	}
	if after := s.client.Get(ctx, one.keys.generation).Val(); after != before {
		t.Errorf("generation %s followed %s without a change", after, before)
	}
}

// TestMessagesAreNoAuthority: whatever is published, what counts is what Redis holds.
func TestMessagesAreNoAuthority(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := patient(on(s))
	options.LocalTTL = time.Hour
	c := settled(t, openCache(t, f, options))
	mustAsk(t, c, withKey("k"))
	before, sequence := s.client.Get(ctx, c.keys.generation).Val(), c.generation.present().sequence
	foreign := tokenAt(time.Now().Add(time.Hour))
	must(t, s.client.Publish(ctx, c.generation.channel, foreign.text).Err())
	eventually(t, "the message is heard", func() bool { return c.generation.present().sequence != sequence })
	if a := mustAsk(t, c, withKey("k")); a.cache.Detail != detailRedis {
		t.Errorf("after a message without a change the answer says %+v", a.cache)
	}
	must(t, c.shared.check(ctx))
	if after := s.client.Get(ctx, c.keys.generation).Val(); after != before {
		t.Errorf("generation %s followed %s without a change", after, before)
	}
}

// TestAddressesAreApart: a name that moves to another tracker meets nothing of the
// former one, and who has the same tracker shares.
func TestAddressesAreApart(t *testing.T) {
	s, former, present := startServer(t), &fakeTracker{}, &fakeTracker{}
	present.version.Store(7)
	options := patient(on(s))
	options.Address = "http://former:80 auto"
	mustAsk(t, openCache(t, former, options), withKey("k"))
	if a := mustAsk(t, openCache(t, former, options), withKey("k")); !a.cache.Hit {
		t.Errorf("a replica with the same tracker says %+v", a.cache)
	}
	options.Address = "http://present:80 auto"
	c := openCache(t, present, options)
	if a := mustAsk(t, c, withKey("k")); a.cache.Hit || !strings.Contains(a.text, present.now()) {
		t.Errorf("after a move the read gives %s, %+v", a.text, a.cache)
	}
	if items, err := c.Lookup(context.Background(), "P", ""); err != nil || len(items) != 1 || items[0].State != "fresh" {
		t.Errorf("after a move there are %+v (%v)", items, err)
	}
}
