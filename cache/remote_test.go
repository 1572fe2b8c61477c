package cache

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	processes "portico/test/process"
)

// sharedLog is a log that several goroutines write and a test reads.
type sharedLog struct{ processes.Output }

func (l *sharedLog) count(text string) int { return strings.Count(l.String(), text) }

func (l *sharedLog) options(o Options) Options {
	o.Logger = slog.New(slog.NewTextHandler(l, nil))
	return patient(o)
}

// TestNoRightToListen: it is said once that changes by others are not heard of, and
// who looks beforehand is told.
func TestNoRightToListen(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	must(t, s.client.Do(ctx, "ACL", "SETUSER", "deaf", "on", ">pass word", "~portico:*", "resetchannels", "+@all").Err())
	log, options := &sharedLog{}, on(s)
	options.Redis.Username, options.Redis.Password = "deaf", "pass word"
	c := openCache(t, f, log.options(options))
	if err := c.Probe(ctx); err == nil || !strings.Contains(err.Error(), c.generation.channel) {
		t.Errorf("who looks beforehand is told %v", err)
	}
	eventually(t, "it is said", func() bool { return log.count("refuses the subscription") == 1 })
	mustAsk(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit || c.Status().Subscribed {
		t.Errorf("the answer says %+v", a.cache)
	}
	must(t, s.client.Do(ctx, "ACL", "SETUSER", "deaf", "&portico:*").Err())
	settled(t, c)
	must(t, c.Probe(ctx))
	if log.count("refuses the subscription") != 1 || log.count("pass word") > 0 {
		t.Errorf("the log says\n%s", log)
	}
}

// TestWhyRedisIsAway: what keeps Redis from answering is in the log, and no secret.
func TestWhyRedisIsAway(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	log, options := &sharedLog{}, on(s)
	options.Redis.Password = "former pass word"
	must(t, s.client.Do(ctx, "ACL", "SETUSER", "default", "resetpass", ">former pass word").Err())
	c := openCache(t, f, log.options(options))
	mustAsk(t, c, withKey("k"))
	must(t, s.client.Do(ctx, "ACL", "SETUSER", "default", "resetpass", ">other pass word").Err())
	must(t, s.client.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
	eventually(t, "the log says why", func() bool {
		mustAsk(t, c, withKey("k"))
		return log.count("redis unreachable") == 1 && log.count("WRONGPASS") > 0
	})
	if log.count("pass word") > 0 {
		t.Errorf("the log says\n%s", log)
	}
}

// TestRedisThatRefusesWrites, as a copy of another one does and one whose disk is full, is away until it takes them, and that is
// said once. What was written meanwhile counts.
func TestRedisThatRefusesWrites(t *testing.T) {
	t.Parallel()
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	log := &sharedLog{}
	c := settled(t, openCache(t, f, log.options(on(s))))
	mustAsk(t, c, withKey("k"))
	must(t, s.client.ConfigSet(ctx, "min-replicas-to-write", "1").Err())
	for range 40 {
		mustWrite(t, c, withKey("k"))
		mustAsk(t, c, withKey("k"))
		time.Sleep(50 * time.Millisecond)
	}
	if away, back := log.count("redis unreachable"), log.count("redis reachable again"); away != 1 || back != 0 {
		t.Errorf("%d times away, %d times back", away, back)
	}
	must(t, s.client.ConfigSet(ctx, "min-replicas-to-write", "0").Err())
	eventually(t, "redis reachable again", func() bool { return log.count("redis reachable again") == 1 })
	eventually(t, "the present answer is kept again", func() bool {
		a := mustAsk(t, c, withKey("k"))
		return a.cache.Hit && strings.Contains(a.text, f.now())
	})
}

// TestReadsDoNotWaitForAConnection: however long making one may take, a read does not
// wait for it, nor does the end.
func TestReadsDoNotWaitForAConnection(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			defer connection.Close()
		}
	})
	defer accepting.Wait()
	defer silent.Close()
	options := Options{Redis: Redis{Addrs: []string{silent.Addr().String()}, TLS: &tls.Config{ServerName: "h"}, DialTimeout: time.Minute}}
	start := time.Now()
	c := New(&fakeTracker{}, options)
	for range 5 {
		mustAsk(t, c, withKey("k"))
	}
	must(t, c.Close())
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("five reads took %s", took)
	}
}

// TestBreakerKnowsARedisThatLosesHalf of all commands, which never fail three times in a row.
func TestBreakerKnowsARedisThatLosesHalf(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string // of commands, over and over: x fails
		opens   int    // after so many, 0 never
	}{
		"every second one": {"x.", 9},
		"two of three":     {"xx.", 5},
		"a third":          {"x..", 0},
		"three in a row":   {"...xxx", 6},
	} {
		b := breaker{changed: func(bool, error) {}}
		opened := 0
		for i := range 200 {
			if c.pattern[i%len(c.pattern)] == 'x' {
				b.note(errRolledBack, false)
			} else {
				b.note(nil, false)
			}
			if !b.allows() {
				opened = i + 1
				break
			}
		}
		if opened != c.opens {
			t.Errorf("%s: it opens after %d, want %d", name, opened, c.opens)
		}
		b.note(nil, true)
		if b.note(errRolledBack, false); !b.allows() {
			t.Errorf("%s: one failure after it was well opens it", name)
		}
	}
}
