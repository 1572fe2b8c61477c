package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
)

// failures are the ways in which the stand-in for a sick tracker fails, by name.
var failures = map[string]func(w http.ResponseWriter, r *http.Request){
	"JSON 500": sends(500, "application/json", `{"error":true,"code":32000,"message":"broken"}`),
	"HTML 500": sends(500, "text/html", "<html>Software error"),
	"100500":   sends(200, "application/json", `{"error":true,"code":100500,"message":"at line 5"}`),
	"502":      sends(502, "text/html", "<html>Bad Gateway"),
	"503":      sends(503, "application/json", `{"error":true,"code":1,"message":"busy"}`),
	"504":      sends(504, "text/html", "<html>Gateway Timeout"),
	"HTML 200": sends(200, "text/html", "<html>Hello"),
	"cut short": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"bugs":`)
	},
	"reset": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"hang":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
}

func sends(status int, contentType, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// patience is how long a client waits whose request may fail.
const patience = 30 * time.Second

// sickTracker is the reference tracker behind a server that fails some requests instead of passing them on.
type sickTracker struct {
	base string
	// fails picks the failure of a request, "" for none.
	fails  atomic.Pointer[func(r *http.Request) string]
	failed atomic.Int64
	// spoils responds to a write in place of the tracker that has carried it out; executed counts those that it has.
	spoils   atomic.Pointer[http.HandlerFunc]
	executed atomic.Int64
}

func startSickTracker(t *testing.T, base string) *sickTracker {
	t.Helper()
	behind := parsed(t, base)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	s := &sickTracker{}
	proxy.ModifyResponse = func(response *http.Response) error {
		spoils := s.spoils.Load()
		if spoils == nil || response.Request.Method == http.MethodGet {
			return nil
		}
		if response.StatusCode/100 == 2 {
			s.executed.Add(1)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		other := httptest.NewRecorder()
		(*spoils)(other, response.Request)
		*response = *other.Result()
		return nil
	}
	s.heal()
	s.base = process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		if kind := (*s.fails.Load())(r); kind != "" {
			s.failed.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			failures[kind](w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	})).String()
	return s
}

func (s *sickTracker) fail(pick func(r *http.Request) string) { s.fails.Store(&pick) }

// spoil sets what becomes of the responses to writes, nothing with nil.
func (s *sickTracker) spoil(with http.HandlerFunc) {
	s.spoils.Store(nil)
	if with != nil {
		s.spoils.Store(&with)
	}
}

func (s *sickTracker) heal() { s.fail(func(*http.Request) string { return "" }) }

// poisoned are request targets that fail: by pass-through and by operations, with a key and without.
func poisoned() []ask {
	return []ask{
		{method: "POST", path: "/rest/user?login=x", body: `{"email":"x@example.com"}`},
		{method: "GET", path: "/rest/bug/2/comment", user: "dev"},
		{method: "PUT", path: "/rest/flag_type/3", user: "editor", body: `{"sortkey":1}`},
		{method: "GET", path: "/rest/bug/attachment/5"},
	}
}

// others are requests that the tracker answers well.
func others() []ask {
	return []ask{
		{method: "GET", path: "/rest/bug/attachment/1", user: "dev"},
		{method: "PUT", path: "/rest/flag_type/1", user: "editor", body: `{"sortkey":12}`},
		{method: "GET", path: "/rest/bug/4/attachment", user: "admin"},
		{method: "PUT", path: "/rest/bug/attachment/1", user: "dev", body: `{"summary":"changed"}`},
		{method: "GET", path: "/rest/bug/1/comment", user: "dev"},
		{method: "POST", path: "/rest/bug/7/comment", user: "dev", body: `{"comment":"a comment"}`},
	}
}

// isRefused reports whether the open breaker refused a request.
func (r *reply) isRefused() bool {
	return strings.HasPrefix(r.header.Get("Portico-Error"), "breaker-open") && !strings.Contains(r.header.Get("Portico-Error"), "unknown")
}

// soon demands that a request is answered at once: in a small part of what a timeout would take, on a busy machine too.
func (c *client) soon(t testing.TB, a ask) *reply {
	t.Helper()
	start := time.Now()
	got := c.do(t, a)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%s %s took %v", a.method, a.path, took)
	}
	return got
}

// TestOutagesAreRecognised: of a tracker that fails in one way. One request target that always fails, however often it is asked, takes the
// tracker from no other caller. One that fails every request is recognised although only one target is asked. Then reads and writes are
// refused at once, and are let through again soon after it has recovered.
func TestOutagesAreRecognised(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	for kind := range failures {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startSickTracker(t, base)
			f := startFacade(t, s.base, "LOG_LEVEL=error", "TRACKERS_MAIN_TIMEOUT=3s", "TRACKERS_MAIN_DIALECT=bugzilla-5", "LIMITS_CONCURRENCY=400")
			f.do(t, others()[0]).ok(t, 200)
			for _, poison := range poisoned() {
				bystanders(t, f, s, kind, poison)
			}
			outage(t, f, s, kind)
		})
	}
}

// bystanders makes requests of other callers beside many that fail, and demands that none of them is refused.
func bystanders(t *testing.T, f *facade, s *sickTracker, kind string, poison ask) {
	t.Helper()
	poisonedPath, _, _ := strings.Cut(poison.path, "?")
	s.fail(func(r *http.Request) string {
		if r.Method == poison.method && r.URL.Path == poisonedPath {
			return kind
		}
		return ""
	})
	var all sync.WaitGroup
	before := s.failed.Load()
	for i := range 12 {
		for range 1 + i%2*8 {
			switch {
			case kind != "hang":
				f.try(patience, poison)
			case i < 4: // each takes the whole timeout of the tracker
				all.Go(func() { f.try(patience, poison) })
			}
		}
		a := others()[i%len(others())]
		if got := f.do(t, a); got.status >= 300 || got.header.Get("Portico-Error") != "" {
			t.Errorf("beside %s %s: request %d, %s %s: status %d, Portico-Error %q",
				poison.method, poison.path, i, a.method, a.path, got.status, got.header.Get("Portico-Error"))
		}
	}
	all.Wait()
	if s.failed.Load() == before {
		t.Error("no poisoned request reached the tracker")
	}
}

// outage lets every request fail, and then none.
func outage(t *testing.T, f *facade, s *sickTracker, kind string) {
	t.Helper()
	read, write := others()[0], others()[1]
	s.fail(func(*http.Request) string { return kind })
	process.Eventually(t, "the breaker opens", func() bool { return f.do(t, read).isRefused() })
	process.Eventually(t, "writes are refused, too", func() bool { return f.do(t, write).isRefused() })
	for range 20 {
		if got := f.soon(t, write); !got.isRefused() {
			t.Errorf("a write during the outage: status %d, %q", got.status, got.header.Get("Portico-Error"))
		}
		f.soon(t, read)
	}
	s.heal()
	began := time.Now()
	process.Eventually(t, "reads work again", func() bool { return f.do(t, read).status == 200 })
	process.Eventually(t, "writes work again", func() bool { return f.do(t, write).status == 200 })
	if recovered := time.Since(began); recovered > 30*time.Second { // 500 ms on a quiet machine
		t.Errorf("recovery took %v", recovered)
	}
}

// TestManyPoisonedTargets: many targets that fail do not count for more than a probe that is well.
func TestManyPoisonedTargets(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	s := startSickTracker(t, base)
	s.fail(func(r *http.Request) string {
		if strings.HasPrefix(r.URL.Path, "/rest/user/") {
			return "HTML 500"
		}
		return ""
	})
	f := startFacade(t, s.base, "LOG_LEVEL=error")
	for i := range 60 {
		for j := range 3 {
			f.try(patience, ask{method: []string{"GET", "POST"}[i%2], path: "/rest/user/" + strconv.Itoa(10*i+j)})
		}
		a := others()[i%len(others())]
		if got := f.do(t, a); got.status >= 300 {
			t.Errorf("request %d, %s %s: status %d, Portico-Error %q", i, a.method, a.path, got.status, got.header.Get("Portico-Error"))
		}
	}
}

// TestWritesAloneHang: a tracker that hangs on writes is recognised by them, and reads go on. When it recovers, writes
// are let through again.
func TestWritesAloneHang(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	s := startSickTracker(t, base)
	f := startFacade(t, s.base, "LOG_LEVEL=error", "TRACKERS_MAIN_TIMEOUT=1s")
	write := func(i int) ask {
		return ask{method: "POST", path: "/rest/bug/" + strconv.Itoa(i%9+1) + "/comment", user: "dev", body: `{"comment":"a comment"}`}
	}
	f.do(t, others()[0]).ok(t, 200)
	s.fail(func(r *http.Request) string {
		if r.Method == http.MethodGet {
			return ""
		}
		return "hang"
	})
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() { f.try(patience, write(i)) })
	}
	all.Wait()
	// Each write that comes alone may be the one that tries whether the tracker is well, so several come at once.
	process.Eventually(t, "the breaker of writes opens", func() bool {
		var refused atomic.Bool
		for i := range 4 {
			all.Go(func() {
				if f.do(t, write(i)).isRefused() {
					refused.Store(true)
				}
			})
		}
		all.Wait()
		return refused.Load()
	})
	for range 20 {
		f.soon(t, others()[0]).ok(t, 200)
	}
	s.heal()
	process.Eventually(t, "writes work again", func() bool { return f.do(t, write(7)).status == 201 })
}

func TestRedisKilled(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	server := process.Redis(t, address)
	_, base := startTracker(t, process.FreeAddress(t))
	f := startFacade(t, base, "CACHE_REDIS=redis://"+address, "CACHE_LOCAL_TTL=0s")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "dev"}
	process.Eventually(t, "a read is answered from Redis", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	server.Kill(t)
	for range 20 {
		f.soon(t, read).ok(t, 200)
	}
	f.put(t, "editor", "/rest/flag_type/1", `{"description":"without Redis"}`).ok(t, 200)
	f.soon(t, read).ok(t, 200).want(t, `type:1.description="without Redis"`)
	if ready := f.operators.do(t, ask{method: http.MethodGet, path: "/readyz"}); ready.status != http.StatusOK {
		t.Errorf("/readyz says %d without Redis", ready.status)
	}
	process.Redis(t, address)
	process.Eventually(t, "reads are answered from the new Redis", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	f.do(t, read).want(t, `type:1.description="without Redis"`)
}

func TestTrackerKilled(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	tracker, base := startTracker(t, address)
	f := startFacade(t, base, "CACHE_TTL=1s", "CACHE_STALE_WHILE_REVALIDATE=0s", "CACHE_LOCAL_TTL=0s", "TIMEOUTS_REDIS=10s")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "granter"}
	f.do(t, read).ok(t, 200)
	tracker.Kill(t)
	died := time.Now()
	attempt := func(op operation) {
		got := f.soon(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body})
		if got.status != 502 && got.status != 503 && got.status != 504 {
			t.Errorf("%s: status %d", op.name, got.status)
		}
		got.refused(t, got.status, 200000+got.status)
	}
	for _, op := range seven() {
		attempt(op)
	}
	f.soon(t, ask{method: http.MethodGet, path: "/rest/bug/1"})
	if alive := f.operators.do(t, ask{method: http.MethodGet, path: "/livez"}); alive.status != http.StatusOK {
		t.Errorf("/livez says %d without the tracker", alive.status)
	}
	for time.Since(died) < 1300*time.Millisecond { // past the time to live, so that only a stale answer is left
		f.soon(t, read).ok(t, 200).want(t, `type:granted.values=["X","?","+","-"]`)
		time.Sleep(50 * time.Millisecond)
	}
	if got := f.soon(t, read); got.cacheStatus() != "hit" || got.header.Get("Age") == "" {
		t.Errorf("a stale answer says %q and Age %q", got.header.Get("Cache-Status"), got.header.Get("Age"))
	}
	for _, op := range seven() {
		attempt(op)
	}
	startTracker(t, address)
	process.Eventually(t, "the tracker is used again", func() bool {
		return f.do(t, ask{method: http.MethodGet, path: "/rest/bug/5/attachment"}).status == 200
	})
	f.post(t, "dev", "/rest/bug/7/attachment", upload(`"content_type":"text/plain"`)).ok(t, 201)
}
