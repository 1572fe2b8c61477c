package cache

import (
	"context"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// tooLate is how much a sick Redis may add to a read.
const tooLate = 150 * time.Millisecond

// promptly reads and fails the test when that takes too long.
func promptly(t *testing.T, c *Cache, key string) answer {
	t.Helper()
	start := time.Now()
	a := mustAsk(t, c, withKey(key))
	if took := time.Since(start); took > tooLate {
		t.Errorf("a read took %s", took)
	}
	return a
}

func TestReadsGoOnWithoutRedis(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Redis: Redis{Addrs: []string{freeAddr(t)}}})
	for i := range 10 {
		if a := promptly(t, c, "k"); a.cache.Hit || a.cache.Detail != "redis-away" {
			t.Errorf("the answer says %+v", a.cache)
		}
		wantCalls(t, f, int64(i+1))
	}
}

func TestLocalLevelWorksWithoutRedis(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{LocalTTL: time.Minute, Redis: Redis{Addrs: []string{freeAddr(t)}}})
	for range 5 {
		mustAsk(t, c, withKey("k"))
	}
	wantCalls(t, f, 1)
	mustWrite(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a write the read gives %s", a.text)
	}
}

func TestReadsGoOnWhenRedisIsKilled(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	s.kill()
	for range 20 {
		promptly(t, c, "k")
		mustWrite(t, c, withKey("k"))
		if a := promptly(t, c, "k"); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s", a.text)
		}
	}
	s.start()
	eventually(t, "Redis is used again", func() bool { return mustAsk(t, c, withKey("k")).cache.Hit })
}

func TestReadsGoOnWhenRedisStandsStill(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	s.pause()
	defer s.resume()
	for range 20 {
		promptly(t, c, "k")
	}
	mustWrite(t, c, withKey("k"))
	if a := promptly(t, c, "k"); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a write the read gives %s", a.text)
	}
	s.resume()
	eventually(t, "Redis is used again", func() bool {
		a := mustAsk(t, c, withKey("k"))
		if !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s", a.text)
		}
		return a.cache.Hit
	})
}

// TestUndeliveredChangeIsDistrusted: Redis comes back with what it held before a
// write that it was not told of.
func TestUndeliveredChangeIsDistrusted(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Fatalf("the answer says %+v", a.cache)
	}
	s.pause()
	mustWrite(t, c, withKey("k"))
	if !c.Status().Undelivered {
		t.Error("the change counts as delivered")
	}
	s.resume()
	for range 50 {
		if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s: %+v", a.text, a.cache)
		}
	}
	eventually(t, "the change is delivered", func() bool { return !c.Status().Undelivered })
	// And others believe it then.
	other := openCache(t, f, on(s))
	if a := mustAsk(t, other, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("another process gives %s", a.text)
	}
}

func TestRedisRestartedEmpty(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
	other := openCache(t, f, on(s))
	for range 3 {
		mustAsk(t, c, withKey("k"))
		s.kill()
		s.start()
		mustWrite(t, c, withKey("k"))
		if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s", a.text)
		}
		eventually(t, "both use the same answers again", func() bool {
			mustAsk(t, c, withKey("k"))
			return mustAsk(t, other, withKey("k")).cache.Hit
		})
	}
}

// TestRedisWentBackInTime: a snapshot from before a write is restored, as when a
// replica that lagged takes over. All that the process knows was acknowledged.
func TestRedisWentBackInTime(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, patient(on(s)))
	mustAsk(t, c, withKey("k"))
	mustAsk(t, c, withKey("k"))
	old, err := s.client.Get(ctx, c.keys.generation()).Result()
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, c, withKey("k")) // the answer itself is still in Redis
	if err := s.client.Set(ctx, c.keys.generation(), old, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("the read gives %s: %+v", a.text, a.cache)
	}
	if now, _ := s.client.Get(ctx, c.keys.generation()).Result(); now == old {
		t.Error("the old generation was left standing")
	}
}

func TestRedisWithoutMemory(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	if err := s.client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		promptly(t, c, "k")
		promptly(t, c, "other")
		mustWrite(t, c, withKey("k"))
		if c.Status().Undelivered {
			t.Fatal("a full Redis keeps a change from being delivered")
		}
		if a := promptly(t, c, "k"); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s", a.text)
		}
	}
	if !c.Status().Redis {
		t.Error("a full Redis counts as away")
	}
	s.client.ConfigSet(ctx, "maxmemory", "0")
	mustAsk(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Errorf("with memory again the answer says %+v", a.cache)
	}
}

func TestGarbageInRedis(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, patient(on(s)))
	mustAsk(t, c, withKey("k"))
	keys, _ := s.client.Keys(ctx, "*"+valueMark+"*").Result()
	if len(keys) != 1 {
		t.Fatalf("there are %d answers", len(keys))
	}
	good, _ := s.client.Get(ctx, keys[0]).Result()
	for i := range len(good) {
		broken := []byte(good)
		broken[i] ^= 0x11
		if _, err := decodeEntry(string(broken)); err == nil {
			t.Fatalf("a value with byte %d changed is believed", i)
		}
		if _, err := decodeEntry(good[:i]); err == nil {
			t.Fatalf("a value of %d bytes is believed", i)
		}
	}
	for _, bad := range []string{"x", formatMark, good[:len(good)-1]} {
		s.client.Set(ctx, keys[0], bad, 0)
		if a := mustAsk(t, c, withKey("k")); a.cache.Hit || a.cache.Detail != "unreadable" {
			t.Errorf("for %q the answer says %+v", bad, a.cache)
		}
	}
	s.client.Set(ctx, c.keys.generation(), "garbage", 0)
	mustAsk(t, c, withKey("k"))
	eventually(t, "the generation is mended", func() bool { return mustAsk(t, c, withKey("k")).cache.Hit })
}

// TestAnswerUnderTheWrongKey: what is stored says what it answers.
func TestAnswerUnderTheWrongKey(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, patient(on(s)))
	mustAsk(t, c, withKey("a"))
	keys, _ := s.client.Keys(ctx, "*"+valueMark+"*").Result()
	mustAsk(t, c, withKey("b"))
	value, _ := s.client.Get(ctx, keys[0]).Result()
	all, _ := s.client.Keys(ctx, "*"+valueMark+"*").Result()
	for _, key := range all {
		s.client.Set(ctx, key, value, 0)
	}
	if a, b := mustAsk(t, c, withKey("a")), mustAsk(t, c, withKey("b")); a.text == b.text || !a.cache.Hit || b.cache.Hit {
		t.Errorf("the callers get %s and %s", a.text, b.text)
	}
}

// TestSlowReadDoesNotRefill: a read that began before a write ends after it.
func TestSlowReadDoesNotRefill(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f, made, give := &fakeTracker{}, make(chan struct{}), make(chan struct{})
		options.LocalTTL = time.Minute
		c := openCache(t, f, patient(options))
		mustWrite(t, c, withKey("k"))
		f.after = slowFor("slow", made, give)
		slow := make(chan answer, 1)
		go func() { slow <- ask(c, withKey("slow")) }()
		<-made // the old answer is on its way
		mustWrite(t, c, withKey("k"))
		// A read that begins after the write does not wait for the slow one.
		f.mu.Lock()
		f.after = nil
		f.mu.Unlock()
		if a := mustAsk(t, c, withKey("slow")); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after the write the read gives %s", a.text)
		}
		close(give)
		<-slow
		for range 3 {
			if a := mustAsk(t, c, withKey("slow")); !strings.Contains(a.text, f.now()) {
				t.Fatalf("after the slow read ended the read gives %s", a.text)
			}
			c.local.clear()
		}
	})
}

// slowFor says on made when the answer for key is made and gives it when told.
func slowFor(key string, made, give chan struct{}) func(caller upstream.Caller) {
	return func(caller upstream.Caller) {
		if caller.Credentials.APIKey == key {
			made <- struct{}{}
			<-give
		}
	}
}

func TestPurgedProductIsAskedForAgain(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := patient(on(s))
	options.LocalTTL = time.Minute
	c := settled(t, openCache(t, f, options))
	other := openCache(t, f, patient(on(s)))
	two := mapping.FlagTypesRequest{Product: "Two"}
	mustAsk(t, c, withKey("k"))
	askFor(ctx, c, withKey("k"), two)
	if err := c.Purge(ctx, " p "); err != nil {
		t.Fatal(err)
	}
	if a := askFor(ctx, other, withKey("k"), two); !a.cache.Hit {
		t.Errorf("the other product was purged too: %+v", a.cache)
	}
	if a := mustAsk(t, other, withKey("k")); a.cache.Hit || a.cache.Detail != "generation" {
		t.Errorf("the product was not purged in the other process: %+v", a.cache)
	}
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit || a.cache.Age > time.Second {
		t.Errorf("the answer says %+v", a.cache)
	}
}
