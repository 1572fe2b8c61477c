package cache

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// mustStore reads until Redis has the response. A response is not stored if Redis was too late for its lookup: nothing tells
// then under which generation the tracker was asked.
func mustStore(t *testing.T, c *Cache, caller upstream.Caller, request mapping.FlagTypesRequest) {
	t.Helper()
	eventually(t, "the response is stored", func() bool {
		a := askFor(t.Context(), c, caller, request)
		must(t, a.err)
		return a.cache.Stored || a.cache.Hit
	})
}

func TestLookup(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f, ctx, clock := &fakeTracker{}, context.Background(), &clock{}
		options.TTL, options.StaleWhileRevalidate, options.StaleIfError = time.Minute, time.Minute, time.Hour
		c := openAt(t, f, options, clock.now)
		for _, key := range []string{"", "secret-key"} {
			for _, component := range []string{"", "C"} {
				mustStore(t, c, withKey(key), mapping.FlagTypesRequest{Product: "P", Component: component})
			}
		}
		mustStore(t, c, withKey(""), mapping.FlagTypesRequest{Product: "Q"})
		state := func(component string, want int, state string) {
			t.Helper()
			items, err := c.Lookup(ctx, "p ", component)
			must(t, err)
			if len(items) != want {
				t.Fatalf("%d items, want %d: %+v", len(items), want, items)
			}
			for _, item := range items {
				known := item.Scope == "anonymous" || strings.HasPrefix(item.Scope, "credential ")
				if item.State != state || item.Product != "P" || item.Bytes == 0 || !known || item.Why == "" {
					t.Errorf("an item is %+v, want state %s", item, state)
				}
				if again, err := c.LookupKey(ctx, item.Key); err != nil || again.Scope != item.Scope {
					t.Errorf("by its key it is %+v, %v", again, err)
				}
			}
		}
		state("", 4, "fresh")
		state("c", 2, "fresh")
		clock.forward(90 * time.Second)
		state("", 4, "stale")
		clock.forward(10 * time.Minute)
		state("", 4, "stale")
		clock.forward(2 * time.Hour)
		state("", 4, "expired")
		clock.forward(-3 * time.Hour)
		must(t, c.Purge(ctx, "P"))
		state("", 4, "outdated")
		if items, err := c.Lookup(ctx, "Q", ""); err != nil || len(items) != 1 || items[0].State == "outdated" {
			t.Errorf("the other product has %+v, %v", items, err)
		}
		must(t, c.Purge(ctx, ""))
		if items, _ := c.Lookup(ctx, "Q", ""); len(items) != 1 || items[0].State != "outdated" {
			t.Errorf("after purging all it has %+v", items)
		}
		if _, err := c.LookupKey(ctx, "nothing"); !errors.Is(err, ErrNoItem) {
			t.Error(err)
		}
	})
}

// TestLookupOfAnotherTracker: trackers may share a Redis, and each cache knows of its own
// answers only.
func TestLookupOfAnotherTracker(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	options := on(s)
	c := openCache(t, f, options)
	options.Tracker = "other"
	other := openCache(t, f, options)
	mustAsk(t, other, withKey("k"))
	items, err := other.Lookup(t.Context(), "P", "")
	if err != nil || len(items) != 1 {
		t.Fatalf("%+v, %v", items, err)
	}
	if item, err := c.LookupKey(t.Context(), items[0].Key); !errors.Is(err, ErrNoItem) {
		t.Errorf("the first cache says %+v, %v", item, err)
	}
	if item, err := c.LookupKey(t.Context(), c.keys.secret); !errors.Is(err, ErrNoItem) {
		t.Errorf("what is no answer is shown as %+v, %v", item, err)
	}
}

func TestLookupWithoutRedis(t *testing.T) {
	c := openCache(t, &fakeTracker{}, Options{Redis: Redis{Addrs: []string{freeAddr(t)}}})
	if _, err := c.Lookup(context.Background(), "P", ""); err == nil {
		t.Error("looking into a Redis that is away gives no error")
	}
	if err := c.Purge(context.Background(), "P"); err == nil {
		t.Error("purging in a Redis that is away gives no error")
	}
}

// TestUnknownNamesLeaveNothing: reads of products that do not
// exist does not fill Redis.
func TestUnknownNamesLeaveNothing(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	f.scripted(always(errNoProduct))
	options := on(s)
	options.Lease = 100 * time.Millisecond
	c := openCache(t, f, options)
	mustCount := func() int64 { return s.client.DBSize(ctx).Val() }
	ask(c, withKey("k"))
	eventually(t, "the lease is over", func() bool { return mustCount() == 2 }) // generation and secret
	for i := range 50 {
		askFor(ctx, c, withKey("k"), mapping.FlagTypesRequest{Product: strings.Repeat("x", i+1)})
	}
	eventually(t, "the leases are over", func() bool { return mustCount() == 2 })
}

func TestEverythingInRedisEnds(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	f.scripted(always(errNoComponent))
	askFor(ctx, c, withKey("k"), mapping.FlagTypesRequest{Product: "P", Component: "None"})
	for _, key := range s.client.Keys(ctx, "*").Val() {
		forever := key == c.keys.generation || key == c.keys.secret || key == c.keys.pending
		if ttl := s.client.TTL(ctx, key).Val(); (ttl < 0) != forever {
			t.Errorf("%s lives for %s", key, ttl)
		}
		if !strings.Contains(key, "{main}") {
			t.Errorf("%s has no hash tag", key)
		}
	}
}

// TestOneProductHasABound: ever new spellings and credentials push out what would
// end first, and leave nothing behind.
func TestOneProductHasABound(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := on(s)
	options.StaleIfError = time.Hour
	c := openCache(t, f, options)
	soon, pipe := float64(time.Now().Add(10*time.Minute).UnixMilli()), s.client.Pipeline()
	for i := range maxIndexed {
		member := c.keys.prefix + valuePart + digest(strconv.Itoa(i))
		pipe.Set(ctx, member, "x", time.Hour)
		pipe.ZAdd(ctx, c.keys.index("P"), redis.Z{Score: soon + float64(i), Member: member})
	}
	_, err := pipe.Exec(ctx)
	must(t, err)
	mustAsk(t, c, withKey("k"))
	askFor(ctx, c, withKey("k"), mapping.FlagTypesRequest{Product: "p "})
	first := s.client.Exists(ctx, c.keys.prefix+"v:"+digest("0"), c.keys.prefix+"v:"+digest("1")).Val()
	third := s.client.Exists(ctx, c.keys.prefix+"v:"+digest("2")).Val()
	if listed := s.client.ZCard(ctx, c.keys.index("P")).Val(); listed != maxIndexed || first != 0 || third != 1 {
		t.Errorf("%d are listed, %d of the first two are there and %d of the third", listed, first, third)
	}
	wantHit(t, c, "k", "what was stored last")
}

func TestEmbeddedServerMakesRoom(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{})
	for i := range 100 {
		a := askFor(context.Background(), c, withKey("k"), mapping.FlagTypesRequest{Product: "P", Component: strings.Repeat("x", i+1)})
		must(t, a.err)
	}
	shrink(c.shared.server, 20_000)
	values := 0
	for _, key := range c.shared.server.DB(0).Keys() {
		if strings.Contains(key, valuePart) {
			values++
		}
	}
	if values == 0 || values > 60 {
		t.Errorf("%d answers are left", values)
	}
	if a := mustAsk(t, c, withKey("k")); a.cache.Hit {
		t.Error("there was an entry that was never read before")
	}
}

// TestEmbeddedServerKeepsEverySize: the pipe to the server holds nothing, and the server reads it in pieces of 4 KiB.
func TestEmbeddedServerKeepsEverySize(t *testing.T) {
	c := openCache(t, &fakeTracker{}, Options{})
	for size := 3000; size < 4300; size += 50 {
		a := askFor(t.Context(), c, withKey("k"), mapping.FlagTypesRequest{Product: "P", Component: strings.Repeat("x", size)})
		must(t, a.err)
		if !a.cache.Stored {
			t.Errorf("the response for a name of %d bytes is not stored", size)
		}
	}
}

func TestTimePassesInTheEmbeddedServer(t *testing.T) {
	c := openCache(t, &fakeTracker{}, Options{Settings: Settings{TTL: 200 * time.Millisecond}})
	mustAsk(t, c, withKey("k"))
	eventually(t, "the entry is gone", func() bool {
		return !slices.ContainsFunc(c.shared.server.DB(0).Keys(), func(key string) bool { return strings.Contains(key, valuePart) })
	})
}
