package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	processes "portico/test/process"
	"portico/upstream"
)

var seed = flag.Uint64("seed", 0, "seed of the property test; 0 takes one from the clock")

// The model. Each write raises a version; each read gives the version that it
// saw. What must hold, whatever happens to Redis:
//   - a read through a process gives no version older than any that was
//     acknowledged through that process before the read began, or that a write
//     through it brought about whose answer was lost;
//   - a read through the other process gives no version older than any that was
//     acknowledged, and delivered to Redis, before the read began less local_ttl
//     (and less modelSlack, for the delays of messages and of this machine);
//   - no caller gets the response for another, or one for a product out of sight;
//   - no read fails;
//   - writes to a tracker that is away take nothing from the cache (see outage).
const (
	modelLocalTTL = 100 * time.Millisecond
	modelSlack    = time.Second
)

// process is one Portico of two on the same Redis.
type process struct {
	name  string
	cache *Cache
	proxy *processes.Relay
	// acked is the newest version acknowledged through this process.
	acked atomic.Int64
}

// world is one run of the model.
type world struct {
	t         *testing.T
	random    *rand.Rand
	randomMu  sync.Mutex
	tracker   *modelTracker
	server    *server
	processes []*process
	hits      atomic.Int64
	reads     atomic.Int64
	// rolledBack is when Redis last went back in time.
	rolledBack atomic.Int64
	// unmarked counts the pending writes that Redis did not confirm in time.
	unmarked atomic.Int64

	mu        sync.Mutex
	delivered []delivery
	violation error
}

// delivery says that Redis knew of a version at a time.
type delivery struct {
	at      time.Time
	version int64
}

func (w *world) rand(n int) int {
	w.randomMu.Lock()
	defer w.randomMu.Unlock()
	return w.random.IntN(n)
}

func newWorld(t *testing.T) *world {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (repeat with -seed)", *seed)
	w := &world{t: t, random: rand.New(rand.NewPCG(*seed, 1)), server: startServer(t)}
	w.tracker = &modelTracker{rand: w.rand}
	for i := range 2 {
		p := &process{name: fmt.Sprint("process ", i), proxy: processes.StartRelay(t, w.server.addr)}
		options := Options{
			Tracker: "main", Redis: Redis{Addrs: []string{p.proxy.Address}},
			Settings: Settings{LocalTTL: modelLocalTTL, TTL: 300 * time.Millisecond, StaleWhileRevalidate: 200 * time.Millisecond, StaleIfError: time.Minute},
			Lease:    100 * time.Millisecond,
			Observer: Observer{Redis: w.observe},
		}
		if i == 1 {
			options.TTL = time.Minute // also answers that do not expire by themselves
		}
		p.cache = New(w.tracker, allObserved(options))
		t.Cleanup(func() { p.cache.Close() })
		w.processes = append(w.processes, p)
	}
	return w
}

// fail keeps the first violation.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == nil {
		w.violation = fmt.Errorf(format, args...)
	}
}

func (w *world) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation
}

// run lets clients and trouble loose until a violation or the end.
func (w *world) run(length time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), length)
	defer stop()
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() { w.repeat(ctx, w.client) })
	}
	wait.Go(func() { w.repeat(ctx, w.record) })
	wait.Go(func() { w.repeat(ctx, w.trouble) })
	wait.Wait()
}

func (w *world) repeat(ctx context.Context, step func()) {
	for ctx.Err() == nil && w.failed() == nil {
		step()
	}
}

// record notes which versions Redis knows of.
func (w *world) record() {
	for _, p := range w.processes {
		version := p.acked.Load()
		if p.cache.generation.undelivered() {
			continue
		}
		w.mu.Lock()
		w.delivered = append(w.delivered, delivery{time.Now(), version})
		w.mu.Unlock()
	}
	time.Sleep(5 * time.Millisecond)
}

// known is the newest version that Redis knew of at a time.
func (w *world) known(at time.Time) (version int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.delivered {
		if d.at.Before(at) {
			version = max(version, d.version)
		}
	}
	return version
}

func (w *world) client() {
	p := w.processes[w.rand(2)]
	if w.rand(30) == 0 {
		w.write(p)
	} else {
		w.read(p)
	}
	time.Sleep(time.Duration(w.rand(4)) * time.Millisecond)
}

func (w *world) write(p *process) {
	reply, err := p.cache.Do(context.Background(), withKey("member"), upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{}})
	var text bytes.Buffer
	var version int64
	var e *mapping.Error
	switch {
	case errors.As(err, &e) && e.Unknown:
		text.WriteString(e.Message)
	case err != nil:
		return
	default:
		_, err = reply.WriteTo(&text)
	}
	if json.Unmarshal(text.Bytes(), &version) != nil {
		w.fail("a write's reply: %v, %s", err, text.String())
	}
	for old := p.acked.Load(); old < version && !p.acked.CompareAndSwap(old, version); old = p.acked.Load() {
	}
}

func (w *world) read(p *process) {
	caller := withKey([]string{"", "member", "stranger"}[w.rand(3)])
	request := mapping.FlagTypesRequest{Product: []string{"Public", "Private"}[w.rand(2)]}
	request.Component = []string{"", "", "some", "none"}[w.rand(4)]
	own, start := p.acked.Load(), time.Now()
	elsewhere := w.known(start.Add(-modelLocalTTL - modelSlack))
	a := askFor(context.Background(), p.cache, caller, request)
	if start.Sub(time.Unix(0, w.rolledBack.Load())) < 2*time.Second {
		elsewhere = 0
	}
	w.reads.Add(1)
	if a.cache.Hit {
		w.hits.Add(1)
	}
	if w.expected(p, caller, request, a) {
		w.check(p, caller, request, a, own, elsewhere)
	}
}

// expected checks that errors are those of the tracker, and tells whether there is
// an answer to look at.
func (w *world) expected(p *process, caller upstream.Caller, request mapping.FlagTypesRequest, a answer) bool {
	code := 0
	switch {
	case request.Product == "Private" && caller.Credentials.APIKey != "member":
		code = 106
	case request.Component == "none":
		code = 51
	}
	var e *mapping.Error
	if errors.As(a.err, &e) && e.Code == code || code == 0 && a.err == nil {
		return a.err == nil
	}
	w.fail("%s: a read for %q of %v gives %q, %v, want error %d", p.name, caller.Credentials.APIKey, request, a.text, a.err, code)
	return false
}

func (w *world) check(
	p *process, caller upstream.Caller, request mapping.FlagTypesRequest, a answer, own, elsewhere int64,
) {
	var got seen
	if err := json.Unmarshal([]byte(a.text), &got); err != nil {
		w.fail("%s: a read gives %q", p.name, a.text)
	}
	if got.Caller != caller.Credentials.APIKey || got.Product != request.Product {
		w.fail("%s: %q reading %v got what belongs to %q, %s", p.name, caller.Credentials.APIKey, request, got.Caller, got.Product)
	}
	if got.Version < own {
		w.fail("%s: a read gives version %d, but %d was acknowledged here before: %+v", p.name, got.Version, own, a.cache)
	}
	if got.Version < elsewhere {
		w.fail("%s: a read gives version %d, but Redis has known %d for long: %+v", p.name, got.Version, elsewhere, a.cache)
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	enough := func() bool { return w.hits.Load() > w.reads.Load()/20 && w.tracker.version.Load() > 20 }
	for range 10 { // a busy machine needs more than one
		if w.run(6 * time.Second); enough() || w.failed() != nil {
			break
		}
	}
	must(t, w.failed())
	w.calm()
	before := w.hits.Load()
	eventually(t, "a hit, now that Redis works", func() bool { w.read(w.processes[0]); return w.hits.Load() > before })
	w.outage()
	must(t, w.failed())
	t.Logf("%d reads, %d of them hits, %d writes", w.reads.Load(), w.hits.Load(), w.tracker.version.Load())
	if !enough() {
		t.Skip("this machine is too busy: Redis has 50 ms for a command, and there was too little to check")
	}
}

// modelTracker is the truth. Private may be seen with the key member only.
type modelTracker struct {
	fakeTracker
	rand func(n int) int
	// away refuses every connection.
	away atomic.Bool
}

var errLost = &mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonTimeout, Unknown: true}

// lost is errLost with the version that the write brought about, which only the
// model may know.
func lost(version int64) error {
	e := *errLost
	e.Message = strconv.FormatInt(version, 10)
	return &e
}

// Do implements upstream.Tracker.
func (m *modelTracker) Do(_ context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	if call.FlagTypes != nil {
		return m.read(caller, *call.FlagTypes)
	}
	return m.write()
}

func (m *modelTracker) read(caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
	m.dawdle()
	switch {
	case m.away.Load():
		return mapping.Reply{}, errRefused
	case request.Product == "Private" && caller.Credentials.APIKey != "member":
		return mapping.Reply{}, errNoProduct
	case request.Component == "none":
		return mapping.Reply{}, errNoComponent
	}
	text, _ := json.Marshal(seen{m.version.Load(), caller.Credentials.APIKey, request.Product})
	m.dawdle()
	return mapping.Reply{Document: mapping.NewDocument(text)}, nil
}

func (m *modelTracker) dawdle() {
	time.Sleep(time.Duration(m.rand(m.rand(4)+1)) * 5 * time.Millisecond)
}

// write fails one time in four, before or after it took effect. Its
// reply tells the version, and so does an error after the effect.
func (m *modelTracker) write() (mapping.Reply, error) {
	m.dawdle()
	fate := m.rand(8)
	if fate == 0 || m.away.Load() {
		return mapping.Reply{}, errRefused
	}
	version := m.version.Add(1)
	m.dawdle()
	if fate == 1 {
		return mapping.Reply{}, lost(version)
	}
	return mapping.Reply{Document: mapping.NewDocument(fmt.Append(nil, version))}, nil
}

// seen is an answer of the model's tracker.
type seen struct {
	Version int64
	Caller  string
	Product string
}

// trouble does something bad to Redis or to the way there, and makes it good again.
func (w *world) trouble() {
	length := time.Duration(10+w.rand(200)) * time.Millisecond
	p := w.processes[w.rand(2)]
	switch w.rand(8) {
	case 0:
		w.server.kill()
		time.Sleep(length)
		w.server.start()
	case 1:
		w.server.pause()
		time.Sleep(length)
		w.server.resume()
	case 2:
		w.server.client.FlushAll(context.Background())
	case 3:
		w.server.client.ClientKillByFilter(context.Background(), "TYPE", "pubsub")
	case 4:
		p.proxy.Down(true)
		time.Sleep(length)
		p.proxy.Down(false)
	case 5:
		p.proxy.Delay.Store(int64(length / 4))
		time.Sleep(length)
		p.proxy.Delay.Store(0)
	case 6:
		w.rollBack(length)
	case 7: // peace
		time.Sleep(3 * length)
	}
	time.Sleep(time.Duration(w.rand(300)) * time.Millisecond)
}

// rollBack puts an old generation back, as a replica that lagged would. What the
// other process may give is not promised then until each has looked again.
func (w *world) rollBack(length time.Duration) {
	ctx, key := context.Background(), w.processes[0].cache.keys.generation
	old, err := w.server.client.Get(ctx, key).Result()
	if err != nil || w.rand(3) > 0 {
		return
	}
	time.Sleep(length)
	w.rolledBack.Store(time.Now().UnixNano())
	w.server.client.Set(ctx, key, old, 0)
	w.rolledBack.Store(time.Now().UnixNano())
}

// calm ends all trouble and waits until Redis knows everything.
func (w *world) calm() {
	w.t.Helper()
	for _, p := range w.processes {
		p.proxy.Delay.Store(0)
		p.proxy.Down(false)
		eventually(w.t, p.name+" delivers its changes", func() bool { return !p.cache.generation.undelivered() })
	}
}

// outage has the tracker go away while clients of both processes keep on writing.
// What is in the cache then has to be given by both for as long as that lasts.
func (w *world) outage() {
	w.t.Helper()
	if w.failed() != nil {
		return
	}
	for _, p := range w.processes {
		eventually(w.t, p.name+" has an answer", func() bool {
			return w.outageRead(p).cache.Hit || w.failed() != nil
		})
	}
	unmarked := w.unmarked.Load()
	w.tracker.away.Store(true)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 5 {
				_ = update(context.Background(), w.processes[(i+w.rand(2))%2].cache, "member")
			}
		})
	}
	writers.Wait()
	if w.unmarked.Load() != unmarked {
		w.t.Log("the machine is too busy to tell whether failed writes keep the cache")
		return
	}
	for _, p := range w.processes {
		var a answer
		eventually(w.t, p.name+" has its Redis", func() bool { // which a busy machine may take away for a moment
			a = w.outageRead(p)
			return a.cache.Detail != detailAway
		})
		if a.err != nil {
			w.fail("%s: after writes that did nothing a read fails: %v, %+v", p.name, a.err, a.cache)
			return
		}
		w.check(p, withKey("member"), outageRequest, a, w.tracker.version.Load(), 0)
	}
}

var outageRequest = mapping.FlagTypesRequest{Product: "Private"}

func (w *world) outageRead(p *process) answer {
	return askFor(context.Background(), p.cache, withKey("member"), outageRequest)
}

func (w *world) observe(operation string, _ time.Duration, err error) {
	if operation == "pending" && err != nil {
		w.unmarked.Add(1)
	}
}
