package journal

import (
	"sync"
	"time"

	"portico/upstream"
)

const (
	// shownTime is how long a caller is remembered for the copy of its write.
	shownTime = time.Minute
	// maxShown bounds the callers that are remembered.
	maxShown = 10_000
)

// shown are the callers of writes that are not copied yet, by the numbers of entries. They are never stored.
type shown struct {
	mu sync.Mutex
	of map[int64]shownCaller
}

type shownCaller struct {
	caller upstream.Caller
	until  time.Time
}

// put remembers the caller of an entry.
func (s *shown) put(seq int64, caller upstream.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) < maxShown {
		s.of[seq] = shownCaller{caller, time.Now().Add(shownTime)}
	}
}

// get returns the caller of an entry, nil if it is not known.
func (s *shown) get(seq int64) *upstream.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.of[seq]
	if !ok || time.Now().After(known.until) {
		return nil
	}
	return &known.caller
}

// forget forgets the caller of an entry and those whose time is over.
func (s *shown) forget(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, seq)
	now := time.Now()
	for other, known := range s.of {
		if now.After(known.until) {
			delete(s.of, other)
		}
	}
}
