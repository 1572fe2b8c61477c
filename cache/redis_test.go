package cache

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	processes "portico/test/process"
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

// writeAndAsk writes, and wants the next read to show that.
func (p *pace) writeAndAsk(f *fakeTracker, c *Cache) {
	p.t.Helper()
	mustWrite(p.t, c)
	if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
		p.t.Fatalf("after a write to %s the read gives %s, %+v, %+v", f.now(), a.text, a.cache, c.Status())
	}
}

// redisTimeout is the time that commands of Redis have by default.
const redisTimeout = 50 * time.Millisecond

var product = mapping.FlagTypesRequest{Product: "P"}

// TestLocalLevelEndsWithoutRedis: while nothing tells of other processes' writes, the tracker is asked.
func TestLocalLevelEndsWithoutRedis(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := on(s)
	options.LocalTTL, options.Redis.Timeout = 10*time.Minute, redisTimeout
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
	mustWrite(t, c)
	wantNow(t, f, c, "k", "after a write")
}

// TestReadsGoOnWithASickRedis: whatever its delay is, also for ever, no read takes much longer, and each write shows in the next one. A full
// Redis still takes changes. Once Redis is well, it is used again.
func TestReadsGoOnWithASickRedis(t *testing.T) {
	late := func(delay time.Duration) func(*server, *processes.Relay) {
		return func(_ *server, way *processes.Relay) { way.Delay.Store(int64(delay)) }
	}
	memory := func(most string) func(*server, *processes.Relay) {
		return func(s *server, _ *processes.Relay) {
			must(t, s.client.ConfigSet(context.Background(), "maxmemory", most).Err())
		}
	}
	for name, c := range map[string]struct {
		timeout    time.Duration
		sick, well func(*server, *processes.Relay)
	}{
		"stands still": {
			redisTimeout, func(s *server, _ *processes.Relay) { s.pause(); s.t.Cleanup(s.resume) }, func(s *server, _ *processes.Relay) { s.resume() },
		},
		"20 ms late": {redisTimeout, late(20 * time.Millisecond), late(0)}, "40 ms late": {redisTimeout, late(40 * time.Millisecond), late(0)},
		"200 ms late": {redisTimeout, late(200 * time.Millisecond), late(0)}, "full": {0, memory("1"), memory("0")},
	} {
		t.Run(name, func(t *testing.T) {
			s, f, p := startServer(t), &fakeTracker{}, newPace(t)
			way := processes.StartRelay(t, s.addr)
			options := on(s)
			options.Redis.Addrs, options.Redis.Timeout = []string{way.Address}, c.timeout
			cache := settled(t, openCache(t, f, options))
			p.ask(cache, product)
			c.sick(s, way)
			for i := range 10 {
				p.ask(cache, mapping.FlagTypesRequest{Product: "P", Component: string(rune('a' + i))})
				p.writeAndAsk(f, cache)
				if status := cache.Status(); name == "full" && (status.Undelivered || !status.Redis) {
					t.Fatalf("a full Redis: %+v", status)
				}
			}
			c.well(s, way)
			eventually(t, "Redis is used again", func() bool {
				wantNow(t, f, cache, "k", "after a write")
				return mustAsk(t, cache, withKey("k")).cache.Hit
			})
		})
	}
}

func TestGarbageInRedis(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
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
	c := openCache(t, f, on(s))
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

// serves sees that answers are kept in this Redis and that a second process finds
// them there.
func serves(t *testing.T, form Redis) {
	t.Helper()
	f := &fakeTracker{}
	options := Options{Tracker: "main", Redis: form}
	options.Redis.DialTimeout = 5 * time.Second
	a, b := settled(t, openCache(t, f, options)), settled(t, openCache(t, f, options))
	mustAsk(t, a, withKey("k"))
	wantHit(t, b, "k", "the other process")
	mustWrite(t, a)
	wantNow(t, f, b, "k", "the other process")
}

func parsed(t *testing.T, text string) Redis {
	t.Helper()
	r, err := ParseRedis(text)
	must(t, err)
	return r
}

// TestFormsOfRedis are those of one server: a number of a database, a socket, a password, TLS.
func TestFormsOfRedis(t *testing.T) {
	t.Run("database", func(t *testing.T) {
		s := startServer(t)
		serves(t, parsed(t, "redis://"+s.addr+"/3"))
		if n := s.client.DBSize(context.Background()).Val(); n != 0 {
			t.Errorf("database 0 has %d keys, all should be in database 3", n)
		}
	})
	t.Run("socket", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		startServer(t, "--unixsocket", path)
		serves(t, parsed(t, "unix://"+path+"?db=2"))
	})
	t.Run("password", func(t *testing.T) {
		serves(t, parsed(t, "redis://:pass@"+startServer(t, "--requirepass", "pass").addr))
	})
	t.Run("TLS", func(t *testing.T) {
		dir := t.TempDir()
		roots, addr := certificate(t, dir), freeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		startServer(t, "--tls-port", port, "--tls-auth-clients", "no", "--tls-ca-cert-file", filepath.Join(dir, "cert.pem"),
			"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"))
		form := parsed(t, "rediss://"+addr)
		form.TLS.RootCAs = roots
		serves(t, form)
	})
}

// TestRedisUser shows which commands and keys a user needs.
func TestRedisUser(t *testing.T) {
	s := startServer(t)
	err := s.client.Do(context.Background(), "ACL", "SETUSER", "portico", "on", ">pass word", "~portico:*", "&portico:*",
		"-@all", "+get", "+mget", "+set", "+setnx", "+del", "+pexpire", "+pttl", "+incrby", "+eval", "+zadd", "+zcard", "+zrange",
		"+zpopmin", "+zremrangebyscore", "+publish", "+subscribe", "+hello", "+auth", "+select").Err()
	must(t, err)
	serves(t, parsed(t, "redis://portico:pass%20word@"+s.addr))
	c := openCache(t, &fakeTracker{}, Options{Redis: parsed(t, "redis://portico:wrong@"+s.addr)})
	if a := mustAsk(t, c, withKey("k")); a.cache.Detail != "redis-away" {
		t.Errorf("with a wrong password the answer says %+v", a.cache)
	}
}

// certificate writes a certificate for loopback and its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	made := httptest.NewTLSServer(nil)
	made.Close()
	pair := made.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	roots := x509.NewCertPool()
	roots.AddCert(made.Certificate())
	return roots
}

func TestParseRedis(t *testing.T) {
	for text, want := range map[string]Redis{
		"embedded":                    {},
		"redis://h":                   {Addrs: []string{"h:6379"}},
		"redis://h:1/2":               {Addrs: []string{"h:1"}, DB: 2},
		"redis://u:p@[::1]:1":         {Addrs: []string{"[::1]:1"}, Username: "u", Password: "p"},
		"redis://:p%40@h?db=4":        {Addrs: []string{"h:6379"}, Password: "p@", DB: 4},
		"redis://h:1?cluster=true":    {Addrs: []string{"h:1"}, Cluster: true},
		"unix:///run/redis.sock?db=1": {Addrs: []string{"/run/redis.sock"}, DB: 1},
		"rediss://h":                  {Addrs: []string{"h:6379"}, TLS: &tls.Config{ServerName: "h"}},
	} {
		got := parsed(t, text)
		if (got.TLS != nil) != (want.TLS != nil) || got.TLS != nil && got.TLS.ServerName != want.TLS.ServerName {
			t.Errorf("%s: TLS %v", text, got.TLS)
		}
		got.TLS, want.TLS = nil, nil
		if strings.Join(got.Addrs, " ") != strings.Join(want.Addrs, " ") || got.DB != want.DB || got.Cluster != want.Cluster ||
			got.Username != want.Username || got.Password != want.Password {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestParseRedisRefuses(t *testing.T) {
	for _, text := range []string{
		"", "h:6379", "http://hush@h", "redis://", "redis://:hush@", "redis://u:hush@h/x", "redis://u:hush@h/-1",
		"redis://u:hush@h?dial_timeout=1s", "unix://u:hush@h/path", "unix://", "redis://u:hush@h:x", "redis://u:hush\x00@h",
		"redis://h?db=x", "redis://h?cluster=perhaps",
	} {
		if r, err := ParseRedis(text); err == nil {
			t.Errorf("%q is taken for %+v", text, r)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: the error shows the password: %s", text, err)
		}
	}
}

// sharedLog is a log that several goroutines write and a test reads.
type sharedLog struct{ processes.Output }

func (l *sharedLog) count(text string) int { return strings.Count(l.String(), text) }

func (l *sharedLog) options(o Options) Options {
	o.Logger = slog.New(slog.NewTextHandler(l, nil))
	return o
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

// TestRightsInDocumentation: an ACL user with the rights that docs/how-to/deploy.md names can do all that the cache does.
func TestRightsInDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/deploy.md")
	must(t, err)
	_, rights, _ := strings.Cut(string(page), "ACL SETUSER cache ")
	rights, _, _ = strings.Cut(rights, "\n")
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	command := []any{"ACL", "SETUSER", "cache"}
	for word := range strings.FieldsSeq(rights) {
		command = append(command, word)
	}
	must(t, s.client.Do(ctx, command...).Err())
	options := on(s)
	options.Redis.Username, options.Redis.Password = "cache", "PASSWORD"
	c := settled(t, openCache(t, f, options))
	must(t, c.Probe(ctx))
	mustAsk(t, c, withKey("k"))
	mustWrite(t, c)
	must(t, c.Purge(ctx, "P"))
	mustAsk(t, c, withKey("k"))
	_, err = c.Lookup(ctx, "P", "")
	must(t, err)
	must(t, c.Purge(ctx, ""))
	for i := range maxIndexed { // more than are listed of a product
		must(t, s.client.ZAdd(ctx, c.keys.index("P"), redis.Z{Score: 1e15, Member: i}).Err())
	}
	mustAsk(t, c, withKey("k"))
	if denied, err := s.client.Do(ctx, "ACL", "LOG").Slice(); err != nil || len(denied) > 0 {
		t.Errorf("Redis refused %v, error %v", denied, err)
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

// TestRedisThatIsSlowAtStart: the log says that Redis is unreachable only if it says later that it is back.
func TestRedisThatIsSlowAtStart(t *testing.T) {
	s, log := startServer(t), &sharedLog{}
	options := log.options(on(s))
	options.Redis.Timeout = redisTimeout
	s.pause()
	c := openCache(t, &fakeTracker{}, options)
	s.resume()
	settled(t, c)
	eventually(t, "the log agrees with the state", func() bool {
		return c.Status().Redis && log.count("redis unreachable") == log.count("redis reachable again") && log.count("cause=") > 0
	})
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
		mustWrite(t, c)
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

// TestDatabasesOfOneServerAreApart: pub/sub knows no databases, so what happens in
// one must not reach who works in another.
func TestDatabasesOfOneServerAreApart(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := on(s)
	options.LocalTTL = time.Hour
	one := settled(t, openCache(t, f, options))
	options.Redis.DB = 1
	two := settled(t, openCache(t, f, options))
	mustAsk(t, one, withKey("k"))
	mustAsk(t, two, withKey("k"))
	before := s.client.Get(ctx, one.keys.generation).Val()
	for range 3 {
		mustWrite(t, two)
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
	options := on(s)
	options.LocalTTL = time.Hour
	c := settled(t, openCache(t, f, options))
	mustAsk(t, c, withKey("k"))
	before, sequence := s.client.Get(ctx, c.keys.generation).Val(), c.generation.present.Load().sequence
	foreign := tokenAt(time.Now().Add(time.Hour))
	must(t, s.client.Publish(ctx, c.generation.channel, foreign.text).Err())
	eventually(t, "the message is heard", func() bool { return c.generation.present.Load().sequence != sequence })
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
	options := on(s)
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
