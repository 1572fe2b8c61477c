package cache

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// tooLate is how much a sick Redis may add to a read.
const tooLate = 150 * time.Millisecond

// pace sees that reads are not held up. This machine may pause for a moment, so one
// read in ten may be late.
type pace struct {
	t           *testing.T
	reads, late int
}

func newPace(t *testing.T) *pace {
	p := &pace{t: t}
	t.Cleanup(func() {
		if p.late > p.reads/10 {
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
	if a.err != nil || took > 5*tooLate {
		p.t.Fatalf("a read took %s, error %v", took, a.err)
	}
	return a
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
	p := newPace(t)
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	s.kill()
	for range 20 {
		p.ask(c, product)
		mustWrite(t, c, withKey("k"))
		if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s", a.text)
		}
	}
	s.start()
	eventually(t, "Redis is used again", func() bool { return mustAsk(t, c, withKey("k")).cache.Hit })
}

func TestReadsGoOnWhenRedisStandsStill(t *testing.T) {
	p := newPace(t)
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
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

// TestChangeIsDeliveredWithoutReads: others must not wait until somebody reads here.
func TestChangeIsDeliveredWithoutReads(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, on(s)), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	s.pause()
	mustWrite(t, c, withKey("k"))
	s.resume()
	eventually(t, "the other process knows", func() bool {
		return strings.Contains(mustAsk(t, other, withKey("k")).text, f.now())
	})
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
			if a := mustAsk(t, c, withKey("slow")); !strings.Contains(a.text, f.now()) || !a.cache.Hit {
				t.Fatalf("after the slow read ended the read gives %s, %+v", a.text, a.cache)
			}
			c.local.clear()
		}
	})
}

// holdReads keeps the replies to Redis reads back.
type holdReads struct {
	held, give chan struct{}
	taken      atomic.Bool
}

func (*holdReads) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*holdReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *holdReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if command.Name() == "mget" && len(command.Args()) == 4 {
			if h.taken.CompareAndSwap(false, true) {
				close(h.held)
				<-h.give
			}
		}
		return err
	}
}

// TestReadDoesNotJoinALookFromBeforeAWrite: Redis was asked before the write, and
// its reply arrives after it.
func TestReadDoesNotJoinALookFromBeforeAWrite(t *testing.T) {
	f, h := &fakeTracker{}, &holdReads{held: make(chan struct{}), give: make(chan struct{})}
	c := settled(t, openCache(t, f, patient(Options{})))
	mustAsk(t, c, withKey("k"))
	c.remote.client.AddHook(h)
	early, late := make(chan answer, 1), make(chan answer, 1)
	go func() { early <- ask(c, withKey("k")) }()
	<-h.held
	mustWrite(t, c, withKey("k"))
	go func() { late <- ask(c, withKey("k")) }()
	select {
	case a := <-late:
		if !strings.Contains(a.text, f.now()) {
			t.Errorf("after the write the read gives %s", a.text)
		}
	case <-time.After(time.Second):
		t.Error("the read waits for the one from before the write")
	}
	close(h.give)
	<-early
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
