package transport

import (
	"net"
	"sync/atomic"
	"testing"
)

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

// TestReplaysOfNetHTTPAreRetries: on kept connections net/http sends reads again by itself. That counts, or the budget would
// be none.
func TestReplaysOfNetHTTPAreRetries(t *testing.T) {
	tr, requests := forgetful(t, func(n, _ int64) bool { return n%3 == 0 })
	seen := &recorder{}
	s := newStack(t, Options{Observer: seen, Break: BreakOptions{MinRequests: 1000, Unanswered: 1000}, Retry: RetryOptions{Base: 1, Burst: 5}})
	const reads = 200
	for range reads {
		_, _, _ = do(s, get(t, tr.url))
	}
	if n := requests.Load(); n > reads+reads/5+5 || n < reads+reads/10 {
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

// TestKeptConnectionsThatEnd: where every kept connection ends without notice, reads go on with new ones when there is no retry left.
func TestKeptConnectionsThatEnd(t *testing.T) {
	tr, _ := forgetful(t, func(_, onConn int64) bool { return onConn > 1 })
	s := newStack(t, Options{Retry: RetryOptions{Burst: 2}})
	for range 100 {
		if status, _, err := do(s, get(t, tr.url)); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
}
