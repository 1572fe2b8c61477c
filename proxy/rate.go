package proxy

import (
	"container/list"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"portico/mapping"
	"portico/upstream"
)

// RateLimits bound how often one caller may ask. The zero value bounds nobody.
type RateLimits struct {
	// Anonymous is for each address that asks without a credential; Keyed is for each credential. A credential that was not
	// seen lately costs its address a call too, or whoever makes up keys could ask without end.
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
	prints           fingerprints
	anonymous, keyed *buckets
}

func newCallerRates(limits RateLimits) *callerRates {
	if limits.Anonymous.PerSecond == 0 && limits.Keyed.PerSecond == 0 {
		return nil
	}
	return &callerRates{
		prints: newFingerprints(), anonymous: newBuckets(limits.Anonymous, mostBuckets), keyed: newBuckets(limits.Keyed, mostBuckets),
	}
}

// take counts a call and tells how long to wait when it is one too many.
func (c *callerRates) take(now time.Time, caller upstream.Caller) time.Duration {
	if caller.Anonymous() {
		return c.anonymous.take(now, c.prints.address(caller.Address))
	}
	credential := c.prints.credential(caller)
	if !c.keyed.holds(credential) {
		if wait := c.anonymous.take(now, c.prints.address(caller.Address)); wait > 0 {
			return wait
		}
	}
	return c.keyed.take(now, credential)
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

// of finds the calls of one caller, and forgets the one that has not asked for the longest time where there are too many.
func (b *buckets) of(key fingerprint) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.byKey[key]; known != nil {
		b.order.MoveToFront(known)
		return known.Value.(*bucket).calls
	}
	if len(b.byKey) >= b.most {
		oldest := b.order.Back()
		delete(b.byKey, b.order.Remove(oldest).(*bucket).key)
	}
	fresh := &bucket{key: key, calls: rate.NewLimiter(b.limit, b.burst)}
	b.byKey[key] = b.order.PushFront(fresh)
	return fresh.calls
}

// admitEarly counts a call before its body is read, if it is known by then who asks.
func (x *exchange) admitEarly() error {
	if x.server.rates == nil {
		return nil
	}
	caller := x.caller
	if x.operation.IsWrite() {
		var err error
		// A mistake in them is told when the body is read.
		if caller.Credentials, err = credentials(x.r.Header, x.query, &mapping.Members{}); err != nil || caller.Anonymous() {
			return nil
		}
	}
	return x.admit(caller)
}

// admit counts a call, once, and refuses it when it is one too many.
func (x *exchange) admit(caller upstream.Caller) error {
	if x.server.rates == nil || x.admitted {
		return nil
	}
	x.admitted = true
	return tooOften(x.server.rates.take(time.Now(), caller))
}

// admitPassing counts a call that is no operation. Its body is not looked at, so a credential there counts as none.
func (s *Server) admitPassing(r *http.Request) error {
	if s.rates == nil {
		return nil
	}
	return tooOften(s.rates.take(time.Now(), s.passingCaller(r)))
}

func tooOften(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	failed := failure(mapping.CodeRateLimited, mapping.ReasonRateLimited, "There were too many calls of this caller. Ask again later.", nil)
	failed.RetryAfter = wait
	return failed
}
