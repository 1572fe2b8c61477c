package tracker

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// JournalEntry is one executed write. It holds no credentials.
type JournalEntry struct {
	ID        int       `json:"id"`
	Operation string    `json:"op"`
	User      string    `json:"user"`
	Time      time.Time `json:"time"`
	IDs       []int     `json:"ids"`
	RequestID string    `json:"request_id,omitempty"`
}

type journal struct {
	mu      sync.Mutex
	entries []JournalEntry
}

func (j *journal) add(e JournalEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.ID = len(j.entries) + 1
	j.entries = append(j.entries, e)
}

func (j *journal) list() []JournalEntry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = nil
}

type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[op]++
}

func (c *counter) list() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}
