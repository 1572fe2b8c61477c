package cache

import (
	"context"
	"errors"
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

func TestAnotherProcessFindsTheAnswer(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	a, b := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
	mustAsk(t, a, withKey("k"))
	if got := mustAsk(t, b, withKey("k")); !got.cache.Hit {
		t.Errorf("the answer says %+v", got.cache)
	}
	wantCalls(t, f, 1)
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

func TestFailedWriteCounts(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, patient(Options{LocalTTL: time.Minute}))
	mustAsk(t, c, withKey("k"))
	f.write = func() error { f.version.Add(1); return errLost }
	if _, err := c.CreateFlagType(context.Background(), withKey("k"), mapping.FlagTypeCreate{}); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a write of unknown outcome the read gives %s", a.text)
	}
}

func TestWriteOutlivesItsClient(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{LocalTTL: time.Minute})
	mustAsk(t, c, withKey("k"))
	ctx, hangUp := context.WithCancel(context.Background())
	f.write = func() error { f.version.Add(1); hangUp(); return nil }
	if _, err := c.UpdateFlagTypes(ctx, withKey("k"), mapping.FlagTypeUpdate{}); err != nil {
		t.Fatal(err)
	}
	if c.Status().Undelivered {
		t.Error("Redis was not told")
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after the write the read gives %s", a.text)
	}
}

func TestPanickingWriteCounts(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{LocalTTL: time.Minute})
	mustAsk(t, c, withKey("k"))
	f.write = func() error { f.version.Add(1); panic("in the tracker") }
	func() {
		defer func() { recover() }()
		c.UpdateFlagTypes(context.Background(), withKey("k"), mapping.FlagTypeUpdate{})
	}()
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after the write the read gives %s", a.text)
	}
}

func TestAnonymousCallersDoNotEmptyTheCache(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, patient(Options{}))
	mustAsk(t, c, withKey("k"))
	f.write = func() error { return &mapping.Error{Code: 410, Status: 401, Message: "log in"} }
	c.UpdateFlagTypes(context.Background(), withKey(""), mapping.FlagTypeUpdate{})
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Errorf("after a refused write without a credential the answer says %+v", a.cache)
	}
	f.write = func() error { return errLost }
	c.UpdateFlagTypes(context.Background(), withKey(""), mapping.FlagTypeUpdate{})
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Errorf("after a write without a credential and without an answer the read says %+v", a.cache)
	}
}

func TestChangesSeenElsewhereCount(t *testing.T) {
	for name, change := range map[string]func(*Cache) error{
		"of the tracker":    func(c *Cache) error { return c.Purge(context.Background(), "") },
		"of the product":    func(c *Cache) error { return c.Purge(context.Background(), "P") },
		"past this Tracker": func(c *Cache) error { return c.WriteAround(context.Background(), func() error { return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTracker{}
			c := openCache(t, f, Options{LocalTTL: time.Minute})
			mustAsk(t, c, withKey("k"))
			f.version.Add(1)
			if err := change(c); err != nil {
				t.Fatal(err)
			}
			if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
				t.Errorf("the read gives %s", a.text)
			}
		})
	}
}

func TestOtherOperationsPassThrough(t *testing.T) {
	f, ctx := &fakeTracker{}, context.Background()
	c := openCache(t, f, Options{})
	c.BugAttachments(ctx, upstream.Caller{}, mapping.AttachmentsRequest{})
	c.Attachment(ctx, upstream.Caller{}, mapping.AttachmentsRequest{})
	c.CreateAttachment(ctx, upstream.Caller{}, mapping.AttachmentCreate{})
	c.UpdateAttachments(ctx, upstream.Caller{}, mapping.AttachmentUpdate{})
	if f.passed.Load() != 4 {
		t.Errorf("%d calls arrived", f.passed.Load())
	}
}

func TestClosedCachePassesOn(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{LocalTTL: time.Minute})
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
