package deploy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
)

// events is a Portico before a tracker that does what a test needs: what it is given goes to the handler, but for the requests for its version.
type events struct {
	t *testing.T
	*process.Facade
}

func startEvents(t *testing.T, tracker http.HandlerFunc, env ...string) *events {
	t.Helper()
	base := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rest/version" {
			_, _ = io.WriteString(w, `{"version":"5.2"}`)
			return
		}
		tracker(w, r)
	}))
	return &events{t, process.Serve(t, env, "serve", "--tracker", base.String())}
}

// value returns what the metrics have for a series, and whether they have it.
func (e *events) value(series string) (value float64, shown bool) {
	e.t.Helper()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(get(e.t, e.Operators+"/metrics"))
	if line == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(line[1], 64)
	must(e.t, err)
	return value, true
}

// counts waits for a series to have a value.
func (e *events) counts(series string, want float64) {
	e.t.Helper()
	process.Eventually(e.t, fmt.Sprint(series, " is ", want), func() bool {
		value, shown := e.value(series)
		return shown && value == want
	})
}

// dial opens a connection and sends a request.
func (e *events) dial(text string) net.Conn {
	e.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.Clients, "http://"))
	must(e.t, err)
	e.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	must(e.t, err)
	return conn
}

// logs waits for a line of the log.
func (e *events) logs(pattern string) {
	e.t.Helper()
	process.Eventually(e.t, "the log has "+pattern, func() bool { return regexp.MustCompile(pattern).MatchString(e.Err.String()) })
}

// TestPassingRequestsAreCounted: a request that passes counts under its operation from the first one on, and one whose response breaks off does not look
// like a success.
func TestPassingRequestsAreCounted(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	e := startEvents(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/endless":
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			begun <- struct{}{}
			<-r.Context().Done()
		}
	})
	for _, state := range []string{"closed", "half-open", "open"} {
		if value, shown := e.value(`portico_breaker_changes_total{breaker="read",state="` + state + `",tracker="main"}`); value != 0 || !shown {
			t.Errorf("a breaker that has just begun shows %g changes to %s (%v)", value, state, shown)
		}
	}
	_ = e.dial("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
	e.counts(`portico_requests_total{operation="passthrough",reason="bad-answer",status_class="2xx"}`, 1)
	e.logs(`"path":"/cut".*"reason":"bad-answer","cause":"tracker passthrough: cut_short`)

	endless := e.dial("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
	_, err := io.ReadFull(endless, make([]byte, 1000))
	must(t, err)
	must(t, endless.Close())
	e.counts(`portico_requests_total{operation="passthrough",reason="canceled",status_class="client_gone"}`, 1)

	const unknown = `portico_tracker_unknown_outcomes_total{operation="passthrough",tracker="main"}`
	if value, shown := e.value(unknown); value != 0 || !shown {
		t.Errorf("%s is %g (%v)", unknown, value, shown)
	}
	write := e.dial("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
	<-begun
	must(t, write.Close())
	e.counts(unknown, 1)
	e.logs(`"path":"/write".*"status":499.*"cause":".*outcome unknown`)
	if metrics := get(t, e.Operators+"/metrics"); strings.Contains(metrics, `operation=""`) {
		t.Errorf("a call has no operation:\n%s", metrics)
	}
}

// TestFlagTypeReadsOfClientsThatGo: such a read counts as one, and a response from memory does not count as taken before the client has it.
func TestFlagTypeReadsOfClientsThatGo(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	flags := strings.Repeat(`,{"id":1,"name":"`+strings.Repeat("n", 1000)+`"}`, 12<<10)[1:] // more than what sockets hold
	e := startEvents(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/Slow") {
			begun <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"bug":[`+flags+`],"attachment":[]}`)
	}, "CACHE_LOCAL_TTL=1h", "CACHE_TTL=1h")
	waits := e.dial("GET /rest/flag_type/Slow HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	must(t, waits.Close())
	e.counts(`portico_cache_total{outcome="error"}`, 1)
	e.logs(`"path":"/rest/flag_type/Slow".*"status":499.*"cache":"miss"`)

	const request, paused = "GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n", 500 * time.Millisecond
	conn := e.dial(request)
	response := make([]byte, 1<<20)
	for taken := 0; taken < len(flags); {
		n, err := conn.Read(response)
		must(t, err)
		taken += n
	}
	for conn.SetReadDeadline(time.Now().Add(paused)) == nil { // the rest of it
		if _, err := conn.Read(response); err != nil {
			break
		}
	}
	must(t, conn.SetReadDeadline(time.Time{}))
	_, err := io.WriteString(conn, request)
	must(t, err)
	_, err = io.ReadFull(conn, response[:1000])
	must(t, err)
	time.Sleep(paused)
	must(t, conn.Close())
	e.counts(`portico_requests_total{operation="flag_type.get",reason="canceled",status_class="client_gone"}`, 2)
	e.counts(`portico_requests_total{operation="flag_type.get",reason="",status_class="2xx"}`, 1)
	e.counts(`portico_cache_total{outcome="local"}`, 1)
	const line = `"path":"/rest/flag_type/P".*"status":499,"duration":"([^"]+)".*"cache":"hit"`
	e.logs(line)
	duration := regexp.MustCompile(line).FindStringSubmatch(e.Err.String())[1]
	if took, err := time.ParseDuration(duration); err != nil || took < paused {
		t.Errorf("the client paused for %v, and the duration is %s", paused, duration)
	}
}

// TestTimeOfTrackerCalls: the time of a call is that of the tracker. It is not that for which the call waited for its turn, and a call that is
// refused has none.
func TestTimeOfTrackerCalls(t *testing.T) {
	t.Parallel()
	const bound, longer = "2.5", 3 * time.Second
	release := make(chan struct{})
	e := startEvents(t, func(http.ResponseWriter, *http.Request) { <-release }, "LIMITS_CONCURRENCY=1", "LIMITS_MAX_CONCURRENCY=1", "LIMITS_QUEUE=1")
	t.Cleanup(func() {
		select {
		case <-release:
		default:
			close(release)
		}
	})
	const request = "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	e.counts(`portico_tracker_calls_total{class="read",operation="version",outcome="ok",status_class="2xx",tracker="main"}`, 1)
	_ = e.dial(request)
	e.counts(`portico_tracker_calls_in_use{tracker="main"}`, 1)
	_ = e.dial(request)
	e.counts(`portico_tracker_calls_waiting{tracker="main"}`, 1)
	_ = e.dial(request)
	e.counts(`portico_tracker_calls_total{class="read",operation="passthrough",outcome="limit_full",status_class="none",tracker="main"}`, 1)
	time.Sleep(longer)
	close(release)
	e.counts(`portico_tracker_calls_total{class="read",operation="passthrough",outcome="ok",status_class="2xx",tracker="main"}`, 2)
	e.counts(`portico_tracker_call_seconds_count{class="read",tracker="main"}`, 3)
	e.counts(`portico_tracker_call_seconds_bucket{class="read",tracker="main",le="`+bound+`"}`, 2)
}

// TestRedisThatNothingUses: where the cache is off nothing says that Redis is away, also after a reload that has turned it off.
func TestRedisThatNothingUses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "portico.yaml")
	configure := func(scope string) {
		text := fmt.Sprintf("trackers: {main: {url: \"http://127.0.0.1:1/\"}}\ncache: {scope: %s, redis: {url: \"redis://127.0.0.1:1\"}}\n", scope)
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	configure("credential")
	e := &events{t, process.Serve(t, nil, "serve", "--config", file)}
	e.counts("portico_redis_up", 0)
	e.counts(`portico_condition{code="redis",subject=""}`, 1)
	configure("off")
	e.Signal(t, syscall.SIGHUP)
	e.counts(`portico_condition{code="redis",subject=""}`, 0)
	process.Eventually(t, "no state of Redis is shown", func() bool { _, shown := e.value("portico_redis_up"); return !shown })
	off := &events{t, process.Serve(t, nil, "serve", "--config", file)}
	if value, shown := off.value("portico_redis_up"); shown {
		t.Errorf("portico_redis_up is %g while the cache is off, which is an alert", value)
	}
}
