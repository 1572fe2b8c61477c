package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func quickRetry(t *testing.T) http.RoundTripper {
	return Retry(newBase(t, BaseOptions{}), RetryOptions{Base: time.Millisecond})
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
			status, body, err := do(quickRetry(t), get(t, tr.url))
			if status != 200 || body != "fine" || err != nil || tr.hits.Load() != 3 {
				t.Errorf("%d %q %v after %d requests", status, body, err, tr.hits.Load())
			}
			tr = flaky(t, 3, fail)
			if status, body, err = do(quickRetry(t), get(t, tr.url)); err == nil && status == 200 || tr.hits.Load() != 3 {
				t.Errorf("gave up with %d %q %v after %d requests", status, body, err, tr.hits.Load())
			}
			tr = flaky(t, 1, fail)
			_, _, _ = do(quickRetry(t), post(t, tr.url))
			if tr.hits.Load() != 1 {
				t.Errorf("a write was sent %d times", tr.hits.Load())
			}
		})
	}
}

func TestRetriesConnectErrors(t *testing.T) {
	tr := flaky(t, 0, nil)
	var dials atomic.Int64
	rt := Retry(newBase(t, BaseOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) < 3 {
			address = strings.TrimPrefix(deadURL(t), "http://")
		}
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}), RetryOptions{Base: time.Millisecond})
	if _, body, err := do(rt, get(t, tr.url)); body != "fine" || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

func TestDoesNotRetry(t *testing.T) {
	hanging := func(c *net.TCPConn) { hang(c) }
	noGetBody := request(t, WithRead(t.Context()), http.MethodPost, "", "{}")
	noGetBody.GetBody = nil
	for name, c := range map[string]struct {
		fail func(*net.TCPConn)
		req  *http.Request
	}{
		"500":                     {say(strings.Replace(status503, "503", "500", 1)), get(t, "")},
		"404":                     {say(strings.Replace(status503, "503", "404", 1)), get(t, "")},
		"a timeout":               {hanging, get(t, "")},
		"a GET that writes":       {say(status503), request(t, WithWrite(t.Context()), http.MethodGet, "", "")},
		"a body it has not kept":  {say(status503), noGetBody},
		"a cut after 64 KiB":      {say("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 80000)), get(t, "")},
		"a cut in a streamed one": {say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), request(t, WithStream(t.Context()), http.MethodGet, "", "")},
	} {
		t.Run(name, func(t *testing.T) {
			tr := flaky(t, 1, c.fail)
			c.req.URL.Scheme, c.req.URL.Host = "http", strings.TrimPrefix(tr.url, "http://")
			base := newBase(t, BaseOptions{ResponseHeaderTimeout: 300 * time.Millisecond})
			_, _, _ = do(Retry(base, RetryOptions{Base: time.Millisecond}), c.req)
			if tr.hits.Load() != 1 {
				t.Errorf("sent %d times", tr.hits.Load())
			}
		})
	}
}

// TestRetryDoesNotWaitTooLong: a tracker that asks for more patience than there is gets its say.
func TestRetryDoesNotWaitTooLong(t *testing.T) {
	tr := flaky(t, 1, say(strings.Replace(status503, "Conn", "Retry-After: 1\r\nConn", 1)))
	rt := Retry(newBase(t, BaseOptions{}), RetryOptions{RetryAfterMax: 999 * time.Millisecond})
	if status, body, err := do(rt, get(t, tr.url)); status != 503 || body != "busy" || err != nil || tr.hits.Load() != 1 {
		t.Errorf("%d %q %v after %d requests", status, body, err, tr.hits.Load())
	}
}

// TestRetryKeepsTheDeadline: an answer in the hand is better than a pause that ends with the deadline.
func TestRetryKeepsTheDeadline(t *testing.T) {
	tr := flaky(t, 1, say(strings.Replace(status503, "Conn", "Retry-After: 1\r\nConn", 1)))
	ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	status, body, err := do(quickRetry(t), request(t, ctx, http.MethodGet, tr.url, ""))
	if status != 503 || body != "busy" || err != nil || tr.hits.Load() != 1 {
		t.Errorf("%d %q %v after %d requests", status, body, err, tr.hits.Load())
	}
}

func TestRetryKeepsTheBody(t *testing.T) {
	var bodies []string
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		w.WriteHeader(http.StatusBadGateway)
	})
	_, _, err := do(quickRetry(t), request(t, WithRead(t.Context()), http.MethodPost, tr.url, "ask"))
	if err != nil || strings.Join(bodies, " ") != "ask ask ask" {
		t.Errorf("bodies %q, error %v", bodies, err)
	}
}

func TestRetryWaitsAsLongAsAsked(t *testing.T) {
	tr := flaky(t, 1, say(strings.Replace(status503, "Conn", "Retry-After: 1\r\nConn", 1)))
	begun := time.Now()
	if _, body, err := do(quickRetry(t), get(t, tr.url)); body != "fine" || err != nil {
		t.Errorf("%q %v", body, err)
	}
	if took := time.Since(begun); took < time.Second || took > 3*time.Second {
		t.Errorf("took %v", took)
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
		status, _, err := do(quickRetry(t), request(t, ctx, http.MethodGet, tr.url, ""))
		done <- end{status, err}
	}()
	eventually(t, "the first request", func() bool { return tr.hits.Load() == 1 })
	begun := time.Now()
	cancel()
	// The answer may have come in the same moment; then it is given as it is.
	if got := <-done; ReasonOf(got.err) != Canceled && got.status != http.StatusServiceUnavailable || tr.hits.Load() != 1 || time.Since(begun) > time.Second {
		t.Errorf("%+v after %d requests and %v", got, tr.hits.Load(), time.Since(begun))
	}
}

// TestRetryBudget: retries are a share of the calls, however many went well before.
func TestRetryBudget(t *testing.T) {
	const good, calls, burst = 200, 100, 5
	var asked atomic.Int64
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	rt := Retry(newBase(t, BaseOptions{}), RetryOptions{Base: 1, Tries: 3, Share: 0.2, Burst: burst})
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
	rt := quickRetry(t)
	for _, n := range []int{0, 1, 8191, 8192, 8193, 65535, 65536, 65537, 300000} {
		for _, form := range []string{"", "&length"} {
			_, body, err := do(rt, get(t, tr.url+"/?n="+strconv.Itoa(n)+form))
			if want := strings.Repeat("0123456789abcdef", n/16+1)[:n]; body != want || err != nil {
				t.Errorf("%d%s: got %d bytes, error %v", n, form, len(body), err)
			}
		}
	}
	if resp, err := rt.RoundTrip(request(t, t.Context(), http.MethodHead, tr.url+"/?n=9&length", "")); err != nil || resp.ContentLength != 9 || slurp(t, resp) != "" {
		t.Errorf("HEAD: %v", err)
	}
}

// TestStreamIsNotHeldBack: the answer's beginning is there although its end is not.
func TestStreamIsNotHeldBack(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	resp, err := quickRetry(t).RoundTrip(request(t, WithStream(t.Context()), http.MethodGet, tr.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, head); err != nil || string(head) != "first" {
		t.Errorf("%q %v", head, err)
	}
}

// TestStreamThatBreaksOffBeforeItsFirstByte: nobody has seen anything of it.
func TestStreamThatBreaksOffBeforeItsFirstByte(t *testing.T) {
	tr := flaky(t, 1, say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
	if _, body, err := do(Streaming(quickRetry(t)), get(t, tr.url)); body != "fine" || err != nil || tr.hits.Load() != 2 {
		t.Errorf("%q %v after %d requests", body, err, tr.hits.Load())
	}
}

func TestPauseHasFullJitter(t *testing.T) {
	r := &retry{o: RetryOptions{Base: 10 * time.Millisecond, Max: 30 * time.Millisecond}}
	for try, ceiling := range map[int]time.Duration{1: 10 * time.Millisecond, 2: 20 * time.Millisecond, 3: 30 * time.Millisecond, 99: 30 * time.Millisecond} {
		low, high := time.Hour, time.Duration(0)
		for range 2000 {
			p := r.pause(try)
			low, high = min(low, p), max(high, p)
		}
		if low > ceiling/10 || high > ceiling || high < ceiling*9/10 {
			t.Errorf("try %d: %v to %v, want 0 to %v", try, low, high, ceiling)
		}
	}
}
