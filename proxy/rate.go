package proxy

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"portico/upstream"
)

// RateLimits bound how often one caller may ask. The zero value bounds nobody.
type RateLimits struct {
	// Anonymous is for each address that asks without a credential; Keyed is for each credential. A credential that no
	// tracker was seen to accept lately costs its address a call too, or whoever makes up keys could ask without end.
	Anonymous, Keyed Rate
}

// Rate is how often somebody may ask; the zero value is without end.
type Rate struct {
	// PerSecond is how many calls a second are let through in the long run.
	PerSecond int
	// Burst is how many calls may come at once; 0 is PerSecond.
	Burst int
}

// mostBuckets bounds how many callers of a kind are remembered. Those that have not asked for the longest time go first.
const mostBuckets = 16384

// callerRates counts the calls of each caller; nil counts nobody's.
type callerRates struct {
	prints    fingerprints
	anonymous *buckets
	// keyed are the credentials that a tracker has accepted, claimed those of which nobody knows yet. They are kept apart, so
	// that made-up ones drive no other out.
	keyed, claimed *buckets
}

func newCallerRates(limits RateLimits) *callerRates {
	if limits.Anonymous.PerSecond == 0 && limits.Keyed.PerSecond == 0 {
		return nil
	}
	return &callerRates{
		prints: newFingerprints(), anonymous: newBuckets(limits.Anonymous, mostBuckets),
		keyed: newBuckets(limits.Keyed, mostBuckets), claimed: newBuckets(limits.Keyed, mostBuckets),
	}
}

// take counts a call and tells how long to wait when it is one too many, and whether the caller's credential is still to be
// proved.
func (c *callerRates) take(now time.Time, caller upstream.Caller) (wait time.Duration, unproved bool) {
	if caller.Anonymous() {
		return c.anonymous.take(now, c.prints.address(caller.Address)), false
	}
	credential := c.prints.credential(caller)
	if c.keyed.holds(credential) {
		return c.keyed.take(now, credential), false
	}
	if wait := c.anonymous.take(now, c.prints.address(caller.Address)); wait > 0 {
		return wait, true
	}
	return c.claimed.take(now, credential), true
}

// accept remembers a credential that a tracker has accepted.
func (c *callerRates) accept(caller upstream.Caller) {
	c.claimed.hand(c.prints.credential(caller), c.keyed)
}

// buckets are the callers of one kind, each with what is left of its calls.
type buckets struct {
	limit rate.Limit
	burst int
	most  int

	mu    sync.Mutex
	byKey map[fingerprint]*list.Element
	order list.List // of *bucket, the last that asked first
}

type bucket struct {
	key   fingerprint
	calls *rate.Limiter
}

func newBuckets(r Rate, most int) *buckets {
	b := &buckets{limit: rate.Limit(r.PerSecond), burst: r.Burst, most: most, byKey: map[fingerprint]*list.Element{}}
	setDefault(&b.burst, r.PerSecond)
	if r.PerSecond == 0 {
		b.limit = rate.Inf
	}
	return b
}

// holds tells whether a caller is remembered.
func (b *buckets) holds(key fingerprint) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byKey[key] != nil
}

// hand gives a caller over to other buckets, with what is left of its calls.
func (b *buckets) hand(key fingerprint, to *buckets) {
	b.mu.Lock()
	held := b.byKey[key]
	if held != nil {
		delete(b.byKey, b.order.Remove(held).(*bucket).key)
	}
	b.mu.Unlock()
	if held == nil {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.byKey[key] == nil {
		to.put(held.Value.(*bucket))
	}
}

// take counts a call and tells how long to wait when it is one too many.
func (b *buckets) take(now time.Time, key fingerprint) time.Duration {
	calls := b.of(key)
	taken := calls.ReserveN(now, 1)
	wait := taken.DelayFrom(now)
	if wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}

// of finds the calls of one caller.
func (b *buckets) of(key fingerprint) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.byKey[key]; known != nil {
		b.order.MoveToFront(known)
		return known.Value.(*bucket).calls
	}
	fresh := &bucket{key: key, calls: rate.NewLimiter(b.limit, b.burst)}
	b.put(fresh)
	return fresh.calls
}

// put takes a caller in, and forgets the one that has not asked for the longest time where there are too many.
func (b *buckets) put(fresh *bucket) {
	if len(b.byKey) >= b.most {
		oldest := b.order.Back()
		delete(b.byKey, b.order.Remove(oldest).(*bucket).key)
	}
	b.byKey[fresh.key] = b.order.PushFront(fresh)
}
