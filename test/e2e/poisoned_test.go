package e2e

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
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
}

func startSickTracker(t *testing.T, base string) *sickTracker {
	t.Helper()
	behind := parsed(t, base)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	s := &sickTracker{}
	s.heal()
	s.base = listenOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

func (s *sickTracker) heal() { s.fail(func(*http.Request) string { return "" }) }

// poisoned are request targets that fail: by pass-through and by operations, with a key and without.
func poisoned() map[string]ask {
	return map[string]ask{
		"anonymous pass-through write": {method: "POST", path: "/rest/user?login=x", body: `{"email":"x@example.com"}`},
		"keyed pass-through read":      {method: "GET", path: "/rest/bug/2/comment", user: "dev"},
		"keyed write":                  {method: "PUT", path: "/rest/flag_type/3", user: "editor", body: `{"sortkey":1}`},
		"anonymous read":               {method: "GET", path: "/rest/bug/attachment/5"},
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

// TestPoisonedTargets: one request target that always fails, however often it is asked, takes the tracker from no other
// caller.
func TestPoisonedTargets(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	for kind := range failures {
		for name, poison := range poisoned() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := startSickTracker(t, base)
				poisonedPath, _ := url.Parse(poison.path)
				s.fail(func(r *http.Request) string {
					if r.Method == poison.method && r.URL.Path == poisonedPath.Path {
						return kind
					}
					return ""
				})
				f := startFacade(t, s.base, "LOG_LEVEL=error", "TRACKERS_MAIN_TIMEOUT=5s", "LIMITS_CONCURRENCY=400")
				f.do(t, others()[0]).ok(t, 200)
				for _, perSecond := range []int{5, 180} {
					bystanders(t, f, s, poison, perSecond, kind == "hang")
				}
			})
		}
	}
}

// bystanders makes requests of other callers beside so many poisoned ones, and demands that none of them is refused.
func bystanders(t *testing.T, f *facade, s *sickTracker, poison ask, perSecond int, hangs bool) {
	t.Helper()
	var all sync.WaitGroup
	before := s.failed.Load()
	for i := range 30 {
		for range max(1, perSecond/20) {
			switch {
			case !hangs:
				f.try(patience, poison)
			case i < 10: // each takes the whole timeout of the tracker
				all.Go(func() { f.try(patience, poison) })
			}
		}
		a := others()[i%len(others())]
		if got := f.do(t, a); got.status >= 300 || got.header.Get("Portico-Error") != "" {
			t.Errorf("%d poisoned a second: request %d, %s %s: status %d, Portico-Error %q",
				perSecond, i, a.method, a.path, got.status, got.header.Get("Portico-Error"))
		}
	}
	all.Wait()
	if s.failed.Load() == before {
		t.Error("no poisoned request reached the tracker")
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
