package cache

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// local is the level inside the process. What it holds is believed until a fixed
// time and only under the generation that was present when it was checked.
type local struct {
	cache *otter.Cache[key, *held]
	ttl   time.Duration
}

// held is an entry in the local level.
type held struct {
	*entry
	seen  *token
	until time.Time
	// retry is when, in nanoseconds of Unix time, a refresh may be tried again.
	retry atomic.Int64
}

func newLocal(ttl time.Duration, bytes uint64) (*local, error) {
	if ttl == 0 {
		return &local{}, nil
	}
	cache, err := otter.New(&otter.Options[key, *held]{
		MaximumWeight: bytes,
		Weigher: func(k key, h *held) uint32 {
			return uint32(256 + len(k.product) + len(k.component) + len(h.text) + len(h.plain) + len(h.stamp))
		},
	})
	return &local{cache: cache, ttl: ttl}, err
}

// get gives what is believed for a key, nil when nothing is.
func (l *local) get(k key, present *token, now time.Time) *held {
	if l.cache == nil {
		return nil
	}
	h, ok := l.cache.GetIfPresent(k)
	if !ok || h.seen != present || !now.Before(h.until) {
		return nil
	}
	return h
}

// put keeps an entry that was known to be current at the time checked, while seen
// was the present generation. It gives what it made also when it keeps nothing.
func (l *local) put(k key, e *entry, seen *token, checked time.Time) *held {
	h := &held{entry: e, seen: seen, until: checked.Add(l.ttl)}
	if l.cache == nil {
		return h
	}
	// The texts of the request may be part of something bigger.
	k.product, k.component = strings.Clone(k.product), strings.Clone(k.component)
	if old, ok := l.cache.GetIfPresent(k); ok && old.entry.filled.Equal(e.filled) {
		h.retry.Store(old.retry.Load())
	}
	l.cache.Set(k, h)
	return h
}

// on tells whether the level exists.
func (l *local) on() bool { return l.cache != nil }

func (l *local) remove(k key) {
	if l.cache != nil {
		l.cache.Invalidate(k)
	}
}

// clear frees the memory of what nobody believes any more.
func (l *local) clear() {
	if l.cache != nil {
		l.cache.InvalidateAll()
	}
}

func (l *local) close() {
	if l.cache != nil {
		l.cache.StopAllGoroutines()
	}
}
