package canary

import (
	"sync"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// refusedFor is how long it is taken for granted that a candidate is refused that was. Where reads are rare, nothing of
// this package is in the processor's caches when one comes, and its client would wait some microseconds for finding out
// the same again: of a cached answer that is percents.
const refusedFor = 100 * time.Millisecond

// refusals counts the reads that are not compared since the candidate is refused.
type refusals struct {
	start time.Time
	// latest is what was found out last about each operation that reads. The map itself does not change.
	latest map[mapping.Operation]*atomic.Pointer[refused]

	mu  sync.Mutex
	all map[subject]*refused
}

// refused counts those of one subject.
type refused struct {
	about subject
	until atomic.Int64 // after refusals.start, in nanoseconds
	n     atomic.Int64
}

func newRefusals() *refusals {
	r := &refusals{start: time.Now(), latest: map[mapping.Operation]*atomic.Pointer[refused]{}, all: map[subject]*refused{}}
	for _, operation := range mapping.Operations() {
		if !operation.IsWrite() {
			r.latest[operation] = &atomic.Pointer[refused]{}
		}
	}
	return r
}

// counted counts a good answer if the other tracker is known to be refused, and tells whether it is.
func (r *refusals) counted(operation mapping.Operation, sides upstream.Sides, answer *upstream.Answer) bool {
	latest := r.latest[operation]
	if latest == nil || answer.Err != nil || answer.Document == nil || answer.Document.NotModified {
		return false
	}
	f := latest.Load()
	if f == nil || f.about.reference != sides.Answered || f.about.candidate != sides.Other || r.now() >= f.until.Load() {
		return false
	}
	f.n.Add(1)
	return true
}

// note counts a read whose candidate was found to be refused, as others will be for a while.
func (r *refusals) note(about subject) {
	r.mu.Lock()
	f := r.all[about]
	if f == nil {
		f = &refused{about: about}
		r.all[about] = f
	}
	r.mu.Unlock()
	f.until.Store(r.now() + int64(refusedFor))
	f.n.Add(1)
	if latest := r.latest[about.operation]; latest != nil {
		latest.Store(f)
	}
}

// now is how long ago start was.
func (r *refusals) now() int64 { return int64(time.Since(r.start)) }

// take gives what was counted, once.
func (r *refusals) take(count func(about subject, n int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for about, f := range r.all {
		if n := f.n.Swap(0); n > 0 {
			count(about, n)
		}
	}
}
