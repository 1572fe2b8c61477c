package transport_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
)

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

// A tracker that serves each call in the same time, however many there are, gets as many as wait.
func TestLimitGrows(t *testing.T) {
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) })
	s := newStack(t, Options{Limit: LimitOptions{Slots: 2, MaxSlots: 16, ReserveWrites: -1, Queue: 100, QueueWait: time.Minute}})
	busy(t, s, tr.url, 20, func() bool { return s.Limiter.Load().Slots == 16 })
	busy(t, s, tr.url, 1, func() bool { return s.Limiter.Load().Slots == 2 })
}

// A tracker with few workers serves no more calls when it gets more at a time. The limit goes back after a try.
func TestLimitShrinks(t *testing.T) {
	workers := make(chan struct{}, 2)
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) {
		workers <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		<-workers
	})
	s := newStack(t, Options{Limit: LimitOptions{Slots: 4, MaxSlots: 64, ReserveWrites: -1, Queue: 100, QueueWait: time.Minute}})
	most := 0
	busy(t, s, tr.url, 100, func() bool {
		slots := s.Limiter.Load().Slots
		most = max(most, slots)
		return slots < most
	})
}

// A failure of the tracker ends the use of what was learned.
func TestLimitAfterFailure(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		time.Sleep(100 * time.Millisecond)
	})
	s := newStack(t, Options{Tries: 1, Limit: LimitOptions{Slots: 2, MaxSlots: 8, ReserveWrites: -1, Queue: 100, QueueWait: time.Minute}})
	busy(t, s, tr.url, 20, func() bool {
		if s.Limiter.Load().Slots < 8 {
			return false
		}
		resp, err := s.RoundTrip(get(t, tr.url+"/fails"))
		if err == nil {
			_ = resp.Body.Close()
		}
		return s.Limiter.Load().Slots == 2
	})
}
