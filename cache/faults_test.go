package cache

import (
	"context"
	"strings"
	"testing"
	"time"

	"portico/mapping"
)

// tooLate is how much a sick Redis may add to a read.
const tooLate = 150 * time.Millisecond

// pace checks that most reads are not held up. A busy machine may pause, so half of the reads may be late: with a Redis that is
// waited for, all are.
type pace struct {
	t           *testing.T
	reads, late int
}

func newPace(t *testing.T) *pace {
	p := &pace{t: t}
	t.Cleanup(func() {
		if p.late > p.reads/2 {
			t.Errorf("%d of %d reads took more than %s", p.late, p.reads, tooLate)
		}
	})
	return p
}

func (p *pace) ask(c *Cache, request mapping.FlagTypesRequest) answer {
	p.t.Helper()
	start := time.Now()
	a := askFor(context.Background(), c, withKey("k"), request)
	took := time.Since(start)
	p.reads++
	if took > tooLate {
		p.late++
	}
	if a.err != nil || took > 20*tooLate {
		p.t.Fatalf("a read took %s, error %v", took, a.err)
	}
	return a
}

// impatient gives commands of Redis the time that they have by default.
func impatient(o Options) Options {
	o.Redis.Timeout = 50 * time.Millisecond
	return o
}

var product = mapping.FlagTypesRequest{Product: "P"}

func TestReadsGoOnWithoutRedis(t *testing.T) {
	p := newPace(t)
	f := &fakeTracker{}
	c := openCache(t, f, Options{Redis: Redis{Addrs: []string{freeAddr(t)}}})
	for i := range 10 {
		if a := p.ask(c, product); a.cache.Hit || a.cache.Detail != "redis-away" {
			t.Errorf("the answer says %+v", a.cache)
		}
		wantCalls(t, f, int64(i+1))
	}
}

// TestLocalLevelEndsWithoutRedis: while nothing tells of other processes' writes, the tracker is asked.
func TestLocalLevelEndsWithoutRedis(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := impatient(on(s))
	options.LocalTTL = 10 * time.Minute
	c := settled(t, openAt(t, f, options, clock.now))
	mustAsk(t, c, withKey("k"))
	s.kill()
	eventually(t, "redis is away", func() bool { return !c.Status().Redis })
	for range 5 {
		mustAsk(t, c, withKey("k"))
	}
	before := f.calls.Load()
	clock.forward(10 * time.Minute)
	for i := range 5 {
		mustAsk(t, c, withKey("k"))
		wantCalls(t, f, before+int64(i)+1)
	}
	mustWrite(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a write the read gives %s", a.text)
	}
}

func TestReadsGoOnWhenRedisStandsStill(t *testing.T) {
	p := newPace(t)
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, impatient(on(s)))
	mustAsk(t, c, withKey("k"))
	s.pause()
	defer s.resume()
	for range 20 {
		p.ask(c, product)
	}
	mustWrite(t, c, withKey("k"))
	if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
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

func TestRedisWithoutMemory(t *testing.T) {
	p := newPace(t)
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	if err := s.client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		p.ask(c, product)
		p.ask(c, mapping.FlagTypesRequest{Product: "Other"})
		mustWrite(t, c, withKey("k"))
		if c.Status().Undelivered {
			t.Fatal("a full Redis keeps a change from being delivered")
		}
		if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
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
	keys, _ := s.client.Keys(ctx, "*"+valuePart+"*").Result()
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
	for _, bad := range []string{"x", "\x00\x00\x00\x00", good[:len(good)-1]} {
		s.client.Set(ctx, keys[0], bad, 0)
		if a := mustAsk(t, c, withKey("k")); a.cache.Hit || a.cache.Detail != "unreadable" {
			t.Errorf("for %q the answer says %+v", bad, a.cache)
		}
	}
	s.client.Set(ctx, c.keys.generation, "garbage", 0)
	mustAsk(t, c, withKey("k"))
	eventually(t, "the generation is mended", func() bool { return mustAsk(t, c, withKey("k")).cache.Hit })
}

// TestAnswerUnderTheWrongKey: what is stored says what it answers.
func TestAnswerUnderTheWrongKey(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, patient(on(s)))
	mustAsk(t, c, withKey("a"))
	keys, _ := s.client.Keys(ctx, "*"+valuePart+"*").Result()
	mustAsk(t, c, withKey("b"))
	value, _ := s.client.Get(ctx, keys[0]).Result()
	all, _ := s.client.Keys(ctx, "*"+valuePart+"*").Result()
	for _, key := range all {
		s.client.Set(ctx, key, value, 0)
	}
	if a, b := mustAsk(t, c, withKey("a")), mustAsk(t, c, withKey("b")); a.text == b.text || !a.cache.Hit || b.cache.Hit {
		t.Errorf("the callers get %s and %s", a.text, b.text)
	}
}
