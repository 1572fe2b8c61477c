package transport

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// timeless is a GET whose context has no deadline.
func timeless(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(WithStream(t.Context()), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestAllTriesTogetherHaveOneTime: the second one does not begin to count anew.
func TestAllTriesTogetherHaveOneTime(t *testing.T) {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = readRequest(c)
		select {
		case <-first: // hangs up
		default:
			hang(c)
		}
	})
	stack := newStack(t, Options{Base: BaseOptions{ResponseHeaderTimeout: time.Minute}, Retry: RetryOptions{Base: 1, Within: 300 * time.Millisecond}})
	begun := time.Now()
	_, _, err := do(stack, timeless(t, tr.url))
	if took := time.Since(begun); ReasonOf(err) != Timeout || tr.hits.Load() != 2 || took > 10*time.Second {
		t.Errorf("%v after %v and %d requests", err, took, tr.hits.Load())
	}
	busy := rawTracker(t, func(c *net.TCPConn) {
		_, _ = readRequest(c)
		_, _ = io.WriteString(c, strings.Replace(status503, "Conn", "Retry-After: 1\r\nConn", 1))
	})
	if status, _, err := do(stack, timeless(t, busy.url)); status != 503 || err != nil || busy.hits.Load() != 1 {
		t.Errorf("%d %v after %d requests: there was no time for a pause", status, err, busy.hits.Load())
	}
}

// TestAnswerOfALaterTryTakesItsTime: the limit is on its beginning.
func TestAnswerOfALaterTryTakesItsTime(t *testing.T) {
	const within = 200 * time.Millisecond
	tr := flaky(t, 1, reset)
	slow := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(3 * within)
		_, _ = io.WriteString(w, "end")
	})
	hosts := []string{tr.url, slow.url}
	each := func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.URL.Host, hosts = strings.TrimPrefix(hosts[0], "http://"), hosts[1:]
		return newBase(t, BaseOptions{}).RoundTrip(req)
	}
	if _, body, err := do(Retry(tripper(each), RetryOptions{Base: 1, Within: within}), timeless(t, tr.url)); body != "first end" || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
