package transport

import (
	"sync"
	"time"
)

// stopwatch adds up the time that one goroutine spends in something, for others to read meanwhile: the end of a
// context is noticed elsewhere than in the Read that it interrupts.
type stopwatch struct {
	mu    sync.Mutex // the end of one stretch and its place in the sum are one step to a reader
	begun time.Time  // of what is under way; zero = nothing
	sum   time.Duration
}

func (s *stopwatch) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = time.Now()
}

func (s *stopwatch) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += time.Since(s.begun)
	s.begun = time.Time{}
}

func (s *stopwatch) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.begun.IsZero()
}

func (s *stopwatch) elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.IsZero() {
		return s.sum
	}
	return s.sum + time.Since(s.begun)
}
