package admin

import "sync"

// series remembers what a kind of events is counted in, because to find that by its labels costs more than to count. Its zero
// value is ready. It is safe for concurrent use.
type series[Kind comparable, Figures any] struct {
	mu    sync.RWMutex
	known map[Kind]Figures
}

// mostSeries is several times what the rooms have to tell apart; more are found by their labels each time.
const mostSeries = 1000

// of gives the figures of a kind, which find looks up the first time.
func (s *series[Kind, Figures]) of(kind Kind, find func(Kind) Figures) Figures {
	s.mu.RLock()
	figures, known := s.known[kind]
	s.mu.RUnlock()
	if known {
		return figures
	}
	figures = find(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[Kind]Figures{}
	}
	if len(s.known) < mostSeries {
		s.known[kind] = figures
	}
	return figures
}
