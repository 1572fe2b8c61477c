package cache

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	processes "portico/test/process"
	"portico/upstream"
)

// fakeTracker answers flag type reads with the version that writes have brought it
// to, and with who asked. It follows a script where a test sets one.
type fakeTracker struct {
	version atomic.Int64
	calls   atomic.Int64

	mu     sync.Mutex
	script func(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) error
	// after runs when the answer is made but not yet given.
	after func(caller upstream.Caller)
	write func() error
	// groups are what a key's owner is in; the answer shows them.
	groups map[string]string
}

// now is what stands in the answers of the present version.
func (f *fakeTracker) now() string { return fmt.Sprintf(`"v%d"`, f.version.Load()) }

func (f *fakeTracker) scripted(script func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = script
}

// Do implements upstream.Tracker.
func (f *fakeTracker) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	switch {
	case call.FlagTypes != nil:
		return f.read(ctx, caller, *call.FlagTypes)
	case call.CreateFlagType != nil:
		return mapping.Reply{Document: mapping.NewDocument([]byte(`{"id":7}`))}, cmp.Or(f.change(), ctx.Err())
	case call.UpdateFlagTypes != nil:
		return mapping.Reply{Document: mapping.NewDocument([]byte(`{"flagtypes":[]}`))}, cmp.Or(f.change(), ctx.Err())
	}
	return mapping.Reply{}, nil
}

func (f *fakeTracker) read(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
	f.calls.Add(1)
	f.mu.Lock()
	script, after := f.script, f.after
	who := caller.Credentials.APIKey
	if groups, ok := f.groups[who]; ok {
		who = groups
	}
	f.mu.Unlock()
	if script != nil {
		if err := script(ctx, caller, request); err != nil {
			return mapping.Reply{}, err
		}
	}
	text := fmt.Sprintf(`{"bug":[{"id":1,"name":"v%d","values":["%x"],"of":%q}],"attachment":[]}`,
		f.version.Load(), hashed(who), request.Product+"/"+request.Component)
	if after != nil {
		after(caller)
	}
	document := mapping.NewDocument([]byte(text))
	document.ETag = fmt.Sprintf("%q", fmt.Sprint(len(text), "-", f.version.Load()))
	return mapping.Reply{Document: document}, nil
}

// hashed keeps the fake tracker itself from putting a credential into an answer.
func hashed(who string) uint32 {
	sum := uint32(17)
	for _, b := range []byte(who) {
		sum = sum*31 + uint32(b)
	}
	return sum
}

func (f *fakeTracker) change() error {
	f.mu.Lock()
	write := f.write
	f.mu.Unlock()
	if write != nil {
		return write()
	}
	f.version.Add(1)
	return nil
}

// Errors as the tracker and its client make them.
var (
	errNoComponent = &mapping.Error{Code: 51, Status: http.StatusNotFound, Message: "no such component"}
	errNoProduct   = &mapping.Error{Code: 106, Status: http.StatusUnauthorized, Message: "no such product"}
	errBadKey      = &mapping.Error{Code: 306, Status: http.StatusBadRequest, Message: "bad key"}
	errLongHeader  = &mapping.Error{Code: 200431, Status: http.StatusRequestHeaderFieldsTooLarge, Reason: mapping.ReasonTooLarge, Message: "long"}
	errRefused     = &mapping.Error{
		Code: mapping.CodeBadGateway, Status: http.StatusBadGateway, Reason: mapping.ReasonUnreachable, Message: "away",
	}
)

func always(err error) func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error {
	return func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error { return err }
}

// clock is a clock that a test moves.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *clock) forward(d time.Duration) { c.offset.Add(int64(d)) }

// withKey is a caller with an API key, anonymous when it is empty.
func withKey(key string) upstream.Caller {
	return upstream.Caller{Credentials: upstream.Credentials{APIKey: key}}
}

// allObserved sets the functions of the observer that a test did not.
func allObserved(options Options) Options {
	all, own := Options{}.withDefaults().Observer, &options.Observer
	setFunc(&own.Read, all.Read, own.Read == nil)
	setFunc(&own.Fill, all.Fill, own.Fill == nil)
	setFunc(&own.Redis, all.Redis, own.Redis == nil)
	setFunc(&own.RedisState, all.RedisState, own.RedisState == nil)
	setFunc(&own.Change, all.Change, own.Change == nil)
	return options
}

func setFunc[F any](field *F, value F, missing bool) {
	if missing {
		*field = value
	}
}

// openCache makes a cache that is closed with the test.
func openCache(t testing.TB, next upstream.Tracker, options Options) *Cache {
	t.Helper()
	return openAt(t, next, options, time.Now)
}

// openAt opens a cache with another clock. Commands of Redis may take long unless the options say otherwise, since a busy machine would
// change what tests count.
func openAt(t testing.TB, next upstream.Tracker, options Options, now func() time.Time) *Cache {
	t.Helper()
	options.Redis.Timeout = cmp.Or(options.Redis.Timeout, 2*time.Second)
	c := open(next, allObserved(options), now)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// settled waits until the cache has begun to listen, which empties its local level.
func settled(t testing.TB, c *Cache) *Cache {
	t.Helper()
	eventually(t, "the cache listens", func() bool { return c.Status().Subscribed })
	return c
}

// on gives options for a cache on a real server.
func on(s *server) Options {
	return Options{Tracker: "main", Redis: Redis{Addrs: []string{s.addr}}}
}

type answer struct {
	text  string
	etag  string
	cache mapping.CacheInfo
	err   error
}

// ask reads flag types of the product P.
func ask(c *Cache, caller upstream.Caller) answer {
	return askFor(context.Background(), c, caller, mapping.FlagTypesRequest{Product: "P"})
}

func askFor(ctx context.Context, c *Cache, caller upstream.Caller, request mapping.FlagTypesRequest) answer {
	return askCall(ctx, c, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request})
}

// askFresh is askFor for a caller that wants a response of the tracker.
func askFresh(ctx context.Context, c *Cache, caller upstream.Caller, request mapping.FlagTypesRequest) answer {
	return askCall(ctx, c, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request, Fresh: true})
}

func askCall(ctx context.Context, c *Cache, caller upstream.Caller, call upstream.Call) answer {
	reply, err := c.Do(ctx, caller, call)
	a := answer{err: err}
	if reply.Cache != nil {
		a.cache = *reply.Cache
	}
	if err != nil {
		return a
	}
	defer reply.Close()
	var text bytes.Buffer
	if _, a.err = reply.WriteTo(&text); a.err == nil {
		a.text, a.etag = text.String(), reply.ETag
	}
	return a
}

// mustAsk is ask where an error ends the test.
func mustAsk(t testing.TB, c *Cache, caller upstream.Caller) answer {
	t.Helper()
	a := ask(c, caller)
	must(t, a.err)
	return a
}

// update makes a write of flag types.
func update(ctx context.Context, c *Cache, key string) error {
	_, err := c.Do(ctx, withKey(key), upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{}})
	return err
}

func mustWrite(t testing.TB, c *Cache) {
	t.Helper()
	must(t, update(context.Background(), c, "k"))
}

// wantNow reads, and wants the text of the present version.
func wantNow(t testing.TB, f *fakeTracker, c *Cache, key, when string) {
	t.Helper()
	if a := mustAsk(t, c, withKey(key)); !strings.Contains(a.text, f.now()) {
		t.Fatalf("%s: the read gives %s, want %s: %+v, %+v", when, a.text, f.now(), a.cache, c.Status())
	}
}

// eventuallyNow reads until it gets the text of the present version.
func eventuallyNow(t testing.TB, f *fakeTracker, c *Cache) {
	t.Helper()
	eventually(t, "the present version is shown", func() bool { return strings.Contains(mustAsk(t, c, withKey("k")).text, f.now()) })
}

// wantHit reads, and wants the answer to come from the cache.
func wantHit(t testing.TB, c *Cache, key, when string) answer {
	t.Helper()
	a := mustAsk(t, c, withKey(key))
	if !a.cache.Hit {
		t.Errorf("%s: the answer says %+v", when, a.cache)
	}
	return a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code int) {
	t.Helper()
	var e *mapping.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %d", err, code)
	}
}

func wantCalls(t testing.TB, f *fakeTracker, calls int64) {
	t.Helper()
	if got := f.calls.Load(); got != calls {
		t.Fatalf("the tracker was asked %d times, want %d", got, calls)
	}
}

// server is a real redis-server, a process of its own.
type server struct {
	*processes.Process
	t      testing.TB
	addr   string
	args   []string
	client *redis.Client
}

// startServer starts a redis-server on a free port.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, addr: freeAddr(t), args: args}
	s.Process = processes.Redis(t, s.addr, args...)
	s.client = redis.NewClient(&redis.Options{Addr: s.addr, DialerRetries: 1, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { _ = s.client.Close() })
	return s
}

// freeAddr gives a free address that no other test gets.
func freeAddr(t testing.TB) string { return processes.FreeAddress(t) }

func (s *server) start() { s.Start(s.t) }

// kill ends the process at once.
func (s *server) kill() { s.Kill(s.t) }

// pause makes the process stand still with its connections open.
func (s *server) pause()  { s.Signal(s.t, syscall.SIGSTOP) }
func (s *server) resume() { s.Signal(s.t, syscall.SIGCONT) }

// eventually waits for something that other goroutines or processes bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	processes.Eventually(t, what, ok)
}

// onCommand does something with the commands of a client of Redis.
type onCommand func(command redis.Cmder, run func() error) error

func (onCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

func (onCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (do onCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := do(command, func() error { return next(ctx, command) })
		if err != nil {
			command.SetErr(err)
		}
		return err
	}
}
