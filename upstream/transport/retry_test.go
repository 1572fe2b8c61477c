package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
)

// retrying is a stack with retries and breakers that never open.
func retrying(t *testing.T, base BaseOptions) *Stack {
	o := plain(base)
	o.Tries = 0
	return newStack(t, o)
}

// flaky fails the first requests in the given way and then answers "fine".
func flaky(t *testing.T, failures int64, fail func(*net.TCPConn)) *tracker {
	var n atomic.Int64
	return rawTracker(t, func(c *net.TCPConn) {
		if _, err := readRequest(c); err != nil {
			return
		}
		if n.Add(1) <= failures {
			fail(c)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine")
	})
}

func say(text string) func(*net.TCPConn) {
	return func(c *net.TCPConn) { _, _ = io.WriteString(c, text) }
}

const status503 = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy"

func TestRetriesWhatMayPass(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*net.TCPConn){
		"reset":                  reset,
		"closed":                 func(*net.TCPConn) {},
		"502":                    say(strings.Replace(status503, "503", "502", 1)),
		"503":                    say(status503),
		"504":                    say(strings.Replace(status503, "503", "504", 1)),
		"small body cut short":   say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
		"chunked body cut short": say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			tr := flaky(t, 2, fail)
			status, body, err := do(retrying(t, BaseOptions{}), get(t, tr.url))
			if status != 200 || body != "fine" || err != nil || tr.hits.Load() != 3 {
				t.Errorf("%d %q %v after %d requests", status, body, err, tr.hits.Load())
			}
			tr = flaky(t, 3, fail)
			if status, body, err = do(retrying(t, BaseOptions{}), get(t, tr.url)); err == nil && status == 200 || tr.hits.Load() != 3 {
				t.Errorf("gave up with %d %q %v after %d requests", status, body, err, tr.hits.Load())
			}
			tr = flaky(t, 1, fail)
			_, _, _ = do(retrying(t, BaseOptions{}), post(t, tr.url))
			if tr.hits.Load() != 1 {
				t.Errorf("a write was sent %d times", tr.hits.Load())
			}
		})
	}
}

func TestRetriesConnectErrors(t *testing.T) {
	tr := flaky(t, 0, nil)
	var dials atomic.Int64
	rt := retrying(t, BaseOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) < 3 {
			address = strings.TrimPrefix(deadURL(t), "http://")
		}
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}})
	must(t, rt, get(t, tr.url))
}

func TestDoesNotRetry(t *testing.T) {
	hanging := func(c *net.TCPConn) { hang(c) }
	noGetBody := request(t, With(t.Context(), reads), http.MethodPost, "", "{}")
	noGetBody.GetBody = nil
	for name, c := range map[string]struct {
		fail func(*net.TCPConn)
		req  *http.Request
	}{
		"500":                     {say(strings.Replace(status503, "503", "500", 1)), get(t, "")},
		"404":                     {say(strings.Replace(status503, "503", "404", 1)), get(t, "")},
		"a timeout":               {hanging, get(t, "")},
		"a GET that writes":       {say(status503), request(t, With(t.Context(), writes), http.MethodGet, "", "")},
		"a body it has not kept":  {say(status503), noGetBody},
		"a cut after 64 KiB":      {say("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 80000)), get(t, "")},
		"a cut in a streamed one": {say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), request(t, With(t.Context(), streamed), http.MethodGet, "", "")},
	} {
		t.Run(name, func(t *testing.T) {
			tr := flaky(t, 1, c.fail)
			c.req.URL.Scheme, c.req.URL.Host = "http", strings.TrimPrefix(tr.url, "http://")
			_, _, _ = do(retrying(t, BaseOptions{HeaderTimeout: 300 * time.Millisecond}), c.req)
			if tr.hits.Load() != 1 {
				t.Errorf("sent %d times", tr.hits.Load())
			}
		})
	}
}

// TestRetryAfterOfATracker is waited for unless it is longer than a read may wait: then the tracker's own response is better.
func TestRetryAfterOfATracker(t *testing.T) {
	for name, c := range map[string]struct {
		seconds string
		within  time.Duration
		status  int
		hits    int64
	}{
		"as long as asked":        {"1", 10 * time.Second, 200, 2},
		"too long":                {"3", 10 * time.Second, 503, 1},
		"longer than the context": {"2", 1900 * time.Millisecond, 503, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := flaky(t, 1, say(strings.Replace(status503, "Conn", "Retry-After: "+c.seconds+"\r\nConn", 1)))
			ctx, cancel := context.WithTimeout(t.Context(), c.within)
			defer cancel()
			begun := time.Now()
			status, body, err := do(retrying(t, BaseOptions{}), request(t, ctx, http.MethodGet, tr.url, ""))
			if status != c.status || len(body) != 4 || err != nil || tr.hits.Load() != c.hits {
				t.Errorf("%d %q %v after %d requests", status, body, err, tr.hits.Load())
			}
			if took := time.Since(begun); c.hits == 2 && (took < time.Second || took > 9*time.Second) {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestRetryKeepsTheBody: the sample says what a call cost the tracker, not only what its caller saw.
func TestRetryKeepsTheBody(t *testing.T) {
	var bodies []string
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		w.WriteHeader(http.StatusBadGateway)
	})
	var seen recorder
	_, _, err := do(newStack(t, Options{Observer: &seen}), request(t, With(t.Context(), reads), http.MethodPost, tr.url, "ask"))
	if err != nil || strings.Join(bodies, " ") != "ask ask ask" {
		t.Errorf("bodies %q, error %v", bodies, err)
	}
	if s := seen.last(t); s.Tries != 3 || s.BytesOut != 9 || s.Status != http.StatusBadGateway || s.Class != Read {
		t.Errorf("sample %+v", s)
	}
}

func TestRetryEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tr := flaky(t, 9, say(strings.Replace(status503, "Conn", "Retry-After: 2\r\nConn", 1)))
	type end struct {
		status int
		err    error
	}
	done := make(chan end, 1)
	go func() {
		status, _, err := do(retrying(t, BaseOptions{}), request(t, ctx, http.MethodGet, tr.url, ""))
		done <- end{status, err}
	}()
	process.Eventually(t, "the first request", func() bool { return tr.hits.Load() == 1 })
	begun := time.Now()
	cancel()
	// The answer may have come in the same moment; then it is given as it is.
	if got := <-done; ReasonOf(got.err) != Canceled && got.status != http.StatusServiceUnavailable || tr.hits.Load() != 1 || time.Since(begun) > 1900*time.Millisecond {
		t.Errorf("%+v after %d requests and %v", got, tr.hits.Load(), time.Since(begun))
	}
}

// TestRetryBudget: retries are a share of the calls, however many went well before.
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	const good, calls, burst = 200, 100, 10
	var asked atomic.Int64
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	rt := retrying(t, BaseOptions{})
	for i := range good + calls {
		if status, _, err := do(rt, get(t, tr.url)); (status == 503) != (i >= good) || err != nil {
			t.Fatalf("%d %v", status, err)
		}
	}
	if extra := tr.hits.Load() - good - calls; extra > calls/5+burst || extra < calls/5-1 {
		t.Errorf("%d retries for %d calls", extra, calls)
	}
}

// TestReplayedBodies: what is read ahead and the rest make the whole, at every size around the limits.
func TestReplayedBodies(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if r.URL.Query().Has("length") {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		} else {
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, strings.Repeat("0123456789abcdef", n/16+1)[:n])
	})
	rt := retrying(t, BaseOptions{})
	for _, n := range []int{0, 1, 8191, 8192, 8193, 65535, 65536, 65537, 300000} {
		for _, form := range []string{"", "&length"} {
			_, body, err := do(rt, get(t, tr.url+"/?n="+strconv.Itoa(n)+form))
			if want := strings.Repeat("0123456789abcdef", n/16+1)[:n]; body != want || err != nil {
				t.Errorf("%d%s: got %d bytes, error %v", n, form, len(body), err)
			}
		}
	}
	resp, err := rt.RoundTrip(request(t, t.Context(), http.MethodHead, tr.url+"/?n=9&length", ""))
	process.Must(t, err)
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.ContentLength != 9 || len(body) != 0 {
		t.Errorf("HEAD: %v", err)
	}
}

// TestStreamThatBreaksOffBeforeItsFirstByte: its caller has seen nothing of it.
func TestStreamThatBreaksOffBeforeItsFirstByte(t *testing.T) {
	tr := flaky(t, 1, say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
	must(t, retrying(t, BaseOptions{}), request(t, With(t.Context(), streamed), http.MethodGet, tr.url, ""))
	if tr.hits.Load() != 2 {
		t.Errorf("%d requests", tr.hits.Load())
	}
}

// TestPauseHasFullJitter: reads that failed together are not repeated together.
func TestPauseHasFullJitter(t *testing.T) {
	const calls = 60
	var failed sync.Map // when each call failed
	pauses := make(chan time.Duration, calls)
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		at, again := failed.LoadOrStore(r.URL.Path, time.Now())
		if again {
			pauses <- time.Since(at.(time.Time))
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	var all sync.WaitGroup
	for i := range calls {
		rt, req := retrying(t, BaseOptions{}), get(t, fmt.Sprint(tr.url, "/", i)) // each with a budget of its own
		all.Go(func() { _, _, _ = do(rt, req) })
	}
	all.Wait()
	close(pauses)
	took := slices.Sorted(func(yield func(time.Duration) bool) {
		for pause := range pauses {
			if !yield(pause) {
				return
			}
		}
	})
	if len(took) != calls || took[calls-1]-took[0] < 25*time.Millisecond {
		t.Errorf("the pauses were %v", took)
	}
}

// TestRetryFreesItsSlot: while a read pauses before its next try, another call has the only slot.
func TestRetryFreesItsSlot(t *testing.T) {
	t.Parallel()
	tr := flaky(t, 1, say(strings.Replace(status503, "Conn", "Retry-After: 1\r\nConn", 1)))
	stack := newStack(t, Options{Limit: LimitOptions{Slots: 1, ReserveWrites: -1, Queue: -1}})
	done := background(stack, get(t, tr.url))
	process.Eventually(t, "it pauses", func() bool { return tr.hits.Load() == 1 && stack.Limiter.Load().InUse == 0 })
	must(t, stack, get(t, tr.url))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// forgetful is a tracker that answers some requests, and ends the connection instead of answering the others. loses gets the
// number of the request, and of the request on its connection.
func forgetful(t *testing.T, loses func(n, onConn int64) bool) (tr *tracker, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	return rawTracker(t, func(c *net.TCPConn) {
		for onConn := int64(1); ; onConn++ {
			if _, err := readRequest(c); err != nil || loses(requests.Add(1), onConn) {
				return
			}
			if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")); err != nil {
				return
			}
		}
	}), requests
}

// TestReplaysOnKeptConnectionsAreRetries: a read that is sent again because a kept connection has ended counts against the budget.
func TestReplaysOnKeptConnectionsAreRetries(t *testing.T) {
	tr, requests := forgetful(t, func(n, _ int64) bool { return n%3 == 0 })
	seen := &recorder{}
	s := newStack(t, Options{Observer: seen, Break: BreakOptions{MinRequests: 1000, Unanswered: 1000}})
	const reads = 200
	for range reads {
		_, _, _ = do(s, get(t, tr.url))
	}
	if n := requests.Load(); n > reads+reads/5+10 || n < reads+reads/10 {
		t.Errorf("%d reads became %d requests", reads, n)
	}
	tries := 0
	for _, sample := range seen.all() {
		tries += sample.Tries
	}
	if int64(tries) != requests.Load() {
		t.Errorf("%d tries are told of %d", tries, requests.Load())
	}
}

// endsKept starts a tracker that ends each kept connection in place of its second response. Its first requests wait for each other, so that each
// has a connection of its own.
func endsKept(t *testing.T, connections int) (tr *tracker, requests *atomic.Int64) {
	t.Helper()
	var first sync.WaitGroup
	first.Add(connections)
	return forgetful(t, func(n, onConn int64) bool {
		if n <= int64(connections) {
			first.Done()
			first.Wait()
		}
		return onConn > 1
	})
}

// TestKeptConnectionsThatEnd: where every kept connection ends without notice, a read tries one of them only, and goes on with new ones when
// there is no retry left.
func TestKeptConnectionsThatEnd(t *testing.T) {
	const kept = 4
	tr, requests := endsKept(t, kept)
	s := newStack(t, Options{})
	if failed := together(t, s, tr.url, kept); len(failed) > 0 {
		t.Fatal(failed)
	}
	must(t, s, get(t, tr.url))
	if n := requests.Load(); n > kept+2 {
		t.Errorf("a read became %d requests", n-kept)
	}
	for n := range 100 { // requests for one target would count once
		must(t, s, get(t, fmt.Sprint(tr.url, "/", n)))
	}
	if now := s.Reads.Status(); now.Failures > 0 || now.Opens > 0 {
		t.Errorf("that is taken for failures of the tracker: %+v", now)
	}
}

// TestKeptConnectionsThatEndWithoutRetries: that is no failure of the tracker, so it is no retry that could hide one.
func TestKeptConnectionsThatEndWithoutRetries(t *testing.T) {
	tr, _ := forgetful(t, func(_, onConn int64) bool { return onConn > 1 })
	w := newPlain(t, BaseOptions{})
	for range 30 {
		must(t, w, get(t, tr.url))
	}
}

// TestKeptConnectionsThatEndUnderProbes: the next probe finds out how the tracker is.
func TestKeptConnectionsThatEndUnderProbes(t *testing.T) {
	const kept = 3
	tr, requests := endsKept(t, kept)
	s := newStack(t, Options{Break: BreakOptions{ProbeURL: tr.url}})
	if failed := together(t, s, tr.url, kept); len(failed) > 0 {
		t.Fatal(failed)
	}
	s.Probe()
	process.Eventually(t, "a probe comes", func() bool { return requests.Load() > kept })
	time.Sleep(300 * time.Millisecond) // in which others came
	if now := s.Reads.Status(); now.Failures > 0 || now.Opens > 0 {
		t.Errorf("after %d requests: %+v", requests.Load(), now)
	}
}

// timeless is a GET whose context has no deadline.
func timeless(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(With(t.Context(), streamed), http.MethodGet, url, http.NoBody)
	process.Must(t, err)
	return req
}

// TestAllTriesTogetherHaveOneTime: the second one does not begin to count anew.
func TestAllTriesTogetherHaveOneTime(t *testing.T) {
	t.Parallel() // most of it waiting
	const within = 2 * time.Second
	first := make(chan struct{}, 1)
	first <- struct{}{}
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = readRequest(c)
		select {
		case <-first: // hangs up
			time.Sleep(within / 2)
		default:
			hang(c)
		}
	})
	stack := retrying(t, BaseOptions{HeaderTimeout: within})
	begun := time.Now()
	_, _, err := do(stack, timeless(t, tr.url))
	if took := time.Since(begun); ReasonOf(err) != Timeout || tr.hits.Load() != 2 || took >= within*3/2 {
		t.Errorf("%v after %v and %d requests", err, took, tr.hits.Load())
	}
	busy := rawTracker(t, func(c *net.TCPConn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, strings.Replace(status503, "Conn", "Retry-After: 2\r\nConn", 1))
	})
	stack = retrying(t, BaseOptions{HeaderTimeout: 1900 * time.Millisecond})
	if status, _, err := do(stack, timeless(t, busy.url)); status != 503 || err != nil || busy.hits.Load() != 1 {
		t.Errorf("%d %v after %d requests: there was no time for a pause", status, err, busy.hits.Load())
	}
}

// TestAnswerOfALaterTryTakesItsTime: the limit is on its beginning.
func TestAnswerOfALaterTryTakesItsTime(t *testing.T) {
	t.Parallel() // most of it waiting
	const within = 1500 * time.Millisecond
	var requests atomic.Int64
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		for range 6 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(within / 4)
		}
	})
	if body := must(t, retrying(t, BaseOptions{HeaderTimeout: within}), timeless(t, tr.url)); body != "xxxxxx" {
		t.Errorf("%q", body)
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"17": 17 * time.Second, "": 0, "-1": 0, "soon": 0, "99999999999999999999": 0,
		"0": time.Millisecond, "Wed, 21 Oct 2015 07:28:00 GMT": time.Millisecond, // at once
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q means %v, want %v", text, got, want)
		}
	}
	later := http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}
	if got := RetryAfter(later); got != 5*time.Minute { // by a clock that may be an hour ahead
		t.Errorf("an hour from now means %v", got)
	}
	soon := http.Header{"Retry-After": {time.Now().Add(3 * time.Minute).UTC().Format(http.TimeFormat)}}
	if got := RetryAfter(soon); got < time.Minute || got > 3*time.Minute {
		t.Errorf("three minutes from now mean %v", got)
	}
}

// TestLimitedClients: after a 429 the tracker is not asked for the same client, and for others it is.
func TestLimitedClients(t *testing.T) {
	after := "17"
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s := retrying(t, BaseOptions{})
	call := func(client byte) error {
		ctx := With(t.Context(), func(c *Call) { c.Client, c.Pause = [16]byte{client}, time.Hour })
		_, _, err := do(s, request(t, ctx, http.MethodGet, tr.url, ""))
		return err
	}
	limited := func(err error, wait time.Duration) bool {
		e, ok := errors.AsType[*Error](err)
		return ok && e.Reason == RateLimited && e.RetryAfter > wait-5*time.Second && e.RetryAfter <= wait
	}
	if first, again := call(1), call(1); first != nil || !limited(again, 17*time.Second) {
		t.Errorf("%v, then %v", first, again)
	}
	after = ""
	if first, again := call(2), call(2); first != nil || !limited(again, time.Hour) {
		t.Errorf("%v, then %v", first, again)
	}
	if first, again := call(0), call(0); first != nil || again != nil || tr.hits.Load() != 4 {
		t.Errorf("without a client %v, then %v; %d requests", first, again, tr.hits.Load())
	}
}
