package transport_test

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
)

// growing is a limit that may grow to most.
func growing(slots, most int) LimitOptions {
	return LimitOptions{Slots: slots, MaxSlots: most, ReserveWrites: -1, Queue: 100, QueueWait: time.Minute}
}

// busy keeps some calls waiting at a tracker until done reports true, and fails the test if it does not.
func busy(t *testing.T, s *Stack, url string, clients int, done func() bool) {
	t.Helper()
	end := make(chan struct{})
	var all sync.WaitGroup
	defer func() { close(end); all.Wait() }()
	for range clients {
		all.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					resp, err := s.RoundTrip(get(t, url))
					if err == nil {
						_ = resp.Body.Close()
					}
				}
			}
		})
	}
	process.Eventually(t, "the limit is what the tracker has use for", done)
}

// A tracker that serves each call in the same time, however many there are, gets as many as wait, until there are few.
func TestLimitGrows(t *testing.T) {
	t.Parallel()
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) })
	s := newStack(t, Options{Limit: growing(2, 16)})
	busy(t, s, tr.url, 20, func() bool { return s.Limiter.Load().Slots == 16 })
	busy(t, s, tr.url, 1, func() bool { return s.Limiter.Load().Slots == 2 })
}

// A tracker with few workers serves no more calls when it gets more at a time. The limit goes back after a try.
func TestLimitShrinks(t *testing.T) {
	t.Parallel()
	workers := make(chan struct{}, 2)
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) {
		workers <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		<-workers
	})
	s := newStack(t, Options{Limit: growing(4, 64)})
	most := 0
	busy(t, s, tr.url, 100, func() bool {
		slots := s.Limiter.Load().Slots
		most = max(most, slots)
		return most > 4 && slots == 4
	})
}

// A failure of the tracker ends the use of what was learned, and for a while nothing is tried.
func TestLimitAfterFailure(t *testing.T) {
	t.Parallel()
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		time.Sleep(100 * time.Millisecond)
	})
	s := newStack(t, Options{Tries: 1, Limit: growing(2, 8)})
	var failed time.Time
	busy(t, s, tr.url, 20, func() bool {
		slots := s.Limiter.Load().Slots
		if failed.IsZero() && slots == 8 {
			_, _, _ = do(s, get(t, tr.url+"/fails"))
			failed = time.Now()
			return false
		}
		if !failed.IsZero() && slots != 2 {
			t.Errorf("%d slots %v after a failure", slots, time.Since(failed))
			return true
		}
		return !failed.IsZero() && time.Since(failed) > 700*time.Millisecond
	})
}

// oneWorker is a tracker that serves one connection after the other.
func oneWorker(t *testing.T, serve func(net.Conn)) *tracker {
	var worker sync.Mutex
	return rawTracker(t, func(c *net.TCPConn) {
		worker.Lock()
		defer worker.Unlock()
		serve(c)
	})
}

// together makes reads at once and returns their errors.
func together(t *testing.T, s *Stack, url string, reads int) (failed []error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range reads {
		all.Go(func() {
			if _, _, err := do(s, get(t, url)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	all.Wait()
	return failed
}

// When no worker comes in time that says nothing about the tracker. A call within the limit counts.
func TestCallsWithoutAWorkerAreNeutral(t *testing.T) {
	t.Parallel()
	tr := oneWorker(t, func(c net.Conn) { hang(c) })
	limit := growing(3, 20)
	limit.QueueWait = 500 * time.Millisecond
	s := newStack(t, Options{Tries: 1, Base: BaseOptions{HeaderTimeout: 500 * time.Millisecond}, Limit: limit})
	if failed := together(t, s, tr.url, 20); len(failed) != 20 || ReasonOf(failed[10]) != Timeout {
		t.Errorf("%d failed: %v", len(failed), failed)
	}
	if status := s.Reads.Status(); status.State != Closed || status.Failures != limit.Slots {
		t.Errorf("%+v", status)
	}
}
