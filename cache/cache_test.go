package cache

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"portico/mapping"
	"portico/upstream"
)

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// levels runs a test on the embedded server and on a real one.
func levels(t *testing.T, test func(t *testing.T, options Options)) {
	t.Run("embedded", func(t *testing.T) { test(t, Options{Tracker: "main"}) })
	t.Run("server", func(t *testing.T) { test(t, on(startServer(t))) })
}

func TestSecondReadIsAHit(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f := &fakeTracker{}
		c := openCache(t, f, patient(options))
		first := mustAsk(t, c, withKey("k"))
		if first.cache.Hit || first.cache.Forward != "miss" || !first.cache.Stored || first.cache.Detail != "cold" {
			t.Errorf("the first answer says %+v", first.cache)
		}
		second := mustAsk(t, c, withKey("k"))
		if !second.cache.Hit || second.cache.Stale || second.cache.Forward != "" || second.cache.Detail != "redis" {
			t.Errorf("the second answer says %+v", second.cache)
		}
		if ttl := second.cache.TTL; ttl <= 50*time.Second || ttl > time.Minute {
			t.Errorf("it stays fresh for %s", ttl)
		}
		if first.text != second.text || first.etag != second.etag || first.etag == "" {
			t.Errorf("they differ: %q %q, %q %q", first.text, first.etag, second.text, second.etag)
		}
		wantCalls(t, f, 1)
	})
}

func TestLocalLevelAnswersWithoutRedis(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f, calls := &fakeTracker{}, 0
		options = patient(options)
		options.LocalTTL = time.Minute
		options.Observer.Redis = func(operation string, _ time.Duration, _ error) {
			if operation == "read" {
				calls++
			}
		}
		c := settled(t, openCache(t, f, options))
		mustAsk(t, c, withKey("k"))
		for range 10 {
			if a := mustAsk(t, c, withKey("k")); !a.cache.Hit || a.cache.Detail != "local" {
				t.Fatalf("the answer says %+v", a.cache)
			}
		}
		wantCalls(t, f, 1)
		if calls != 1 {
			t.Errorf("Redis was read %d times, want once", calls)
		}
	})
}

func TestWriteIsVisibleInTheNextRead(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		options.LocalTTL = time.Minute
		f := &fakeTracker{}
		c := openCache(t, f, options)
		for range 20 {
			mustAsk(t, c, withKey("k"))
			mustAsk(t, c, withKey("k"))
			mustWrite(t, c, withKey("k"))
			if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
				t.Fatalf("after a write the read gives %s, want %s", a.text, f.now())
			}
		}
	})
}

func TestWriteOutlivesItsClient(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
	mustAsk(t, c, withKey("k"))
	ctx, hangUp := context.WithCancel(context.Background())
	f.write = func() error { f.version.Add(1); hangUp(); return nil }
	if _, err := c.Do(ctx, withKey("k"), upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{}}); err != nil {
		t.Fatal(err)
	}
	if c.Status().Undelivered {
		t.Error("Redis was not told")
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after the write the read gives %s", a.text)
	}
}

func TestClosedCachePassesOn(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
	mustAsk(t, c, withKey("k"))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal("closing again: ", err)
	}
	mustWrite(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("the read gives %s", a.text)
	}
}
