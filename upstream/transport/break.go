package transport

import (
	"context"
	"net/http"
	"time"
)

// Breakers are the two breakers of one tracker: a tracker that cannot write may still read.
type Breakers struct {
	Reads, Writes *Breaker
	next          http.RoundTripper
	prober        *prober
}

// Break puts breakers before next. Close it.
func Break(next http.RoundTripper, o BreakOptions) *Breakers {
	o = o.withDefaults()
	b := &Breakers{next: next}
	b.prober = newProber(next, o)
	b.Reads = newBreaker("read", o, b.prober.start)
	b.Writes = newBreaker("write", o, b.prober.start)
	b.Reads.closed = b.Writes.encourage
	b.prober.targets = []*Breaker{b.Reads, b.Writes}
	return b
}

// Close ends probing and waits for probes under way. Calls still work.
func (b *Breakers) Close() { b.prober.close() }

// RoundTrip makes the call unless its breaker is open.
func (b *Breakers) RoundTrip(req *http.Request) (*http.Response, error) {
	breaker, read := b.Writes, isRead(req)
	if read {
		breaker = b.Reads
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	c, wait := b.admit(breaker, cancel, read)
	if c == nil {
		cancel(nil)
		closeBody(req)
		return nil, &Error{Reason: BreakerOpen, Op: Operation(ctx), RetryAfter: wait}
	}
	if c.client != nil {
		ctx = mark(ctx, func(m *marks) { m.client = c.client })
	}
	resp, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		breaker.finish(c, judge(ending{err: err}))
		cancel(nil)
		return nil, err
	}
	b.follow(ctx, breaker, c, resp)
	return resp, nil
}

// admit asks the breaker, but refuses writes while there is no sign that the tracker answers anybody. A read that finds
// out by trying is given up when it takes too long. A write cannot be, or nobody would know what became of it, and its
// client would wait out the whole timeout of a tracker that is known to hang. So the probes find out for the writes.
func (b *Breakers) admit(breaker *Breaker, cancel context.CancelCauseFunc, read bool) (*call, time.Duration) {
	if !read && (b.Writes.blind() || b.Reads.blind() && b.Reads.silent()) {
		return nil, b.Writes.refuse()
	}
	return breaker.admit(cancel, read)
}

// heard follows an answer, whatever it says: who answers one kind of call does not hang for the other.
func (b *Breakers) heard(from *Breaker, c *call) {
	for _, other := range []*Breaker{b.Reads, b.Writes} {
		if other != from {
			other.vouch(c.begun)
		}
	}
}

// follow reports after the body (DESIGN.md section 7). The context that the breaker gave the call ends with it.
func (b *Breakers) follow(ctx context.Context, breaker *Breaker, c *call, resp *http.Response) {
	b.heard(breaker, c)
	if resp.StatusCode >= http.StatusInternalServerError {
		breaker.finish(c, verdict{reason: ServerError})
	} else {
		breaker.answered(c)
	}
	watch(ctx, resp, true, func(e ending) {
		breaker.finish(c, judge(e))
		c.cancel(nil)
	})
}

// judge tells whose failure an ending was. A deadline that passes while the client is slow to take its bytes
// is not the tracker's: most of the time must have been spent waiting for the tracker.
func judge(e ending) verdict {
	reason := ReasonOf(e.err)
	switch {
	case reason == "":
		return verdict{}
	case reason.nobodysFault(), reason == Timeout && e.lasted > 0 && e.waited < e.lasted/2:
		return verdict{neutral: true}
	}
	return verdict{reason: reason}
}
