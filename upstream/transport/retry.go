package transport

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// RetryOptions sets how reads are repeated. Zero fields mean the default in brackets.
type RetryOptions struct {
	Tries         int           // in all, so 1 switches retries off [3]
	Base          time.Duration // the first pause is up to this long, the next up to twice that [50ms]
	Max           time.Duration // longest pause [1s]
	Share         float64       // retries per call, on average [0.2]
	Burst         int           // retries that may be saved up [10]
	RetryAfterMax time.Duration // the longest Retry-After that is waited for; a longer one is the caller's to see [2s]
	Prefetch      int           // bytes of an answer read before it is passed on [65536]
	Within        time.Duration // the time to the header of an answer, all tries together, of a call without a deadline [no limit]
}

func (o RetryOptions) withDefaults() RetryOptions {
	o.Tries = cmp.Or(o.Tries, 3)
	o.Base = cmp.Or(o.Base, 50*time.Millisecond)
	o.Max = cmp.Or(o.Max, time.Second)
	o.Share = cmp.Or(o.Share, 0.2)
	o.Burst = cmp.Or(o.Burst, 10)
	o.RetryAfterMax = cmp.Or(o.RetryAfterMax, 2*time.Second)
	o.Prefetch = cmp.Or(o.Prefetch, 64<<10)
	return o
}

// Validate reports everything that is wrong with the options at once.
func (o RetryOptions) Validate() error {
	var share error
	if o.Share < 0 || o.Share > 1 {
		share = errors.New("retry share: must be between 0 and 1")
	}
	return errors.Join(share,
		notNegative("retry tries", o.Tries),
		notNegative("retry pause", o.Base),
		notNegative("longest retry pause", o.Max),
		notNegative("saved retries", o.Burst),
		notNegative("longest Retry-After", o.RetryAfterMax),
		notNegative("prefetched bytes", o.Prefetch),
		notNegative("time for all tries", o.Within),
	)
}

// Retry repeats reads that failed in a way that may pass, before the caller has seen a byte. Writes go through
// untouched: repeating one blindly could do it twice (DESIGN.md section 7).
func Retry(next http.RoundTripper, o RetryOptions) http.RoundTripper {
	o = o.withDefaults()
	return &retry{next: next, o: o, budget: newBudget(o.Share, o.Burst)}
}

type retry struct {
	next   http.RoundTripper
	o      RetryOptions
	budget *budget
}

// RoundTrip makes one call of up to Tries requests.
func (r *retry) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isRead(req) {
		countTry(req.Context())
		return r.next.RoundTrip(req)
	}
	r.budget.earn()
	req = r.lend(req)
	until := r.until(req.Context())
	for try := 1; ; try++ {
		a := r.attempt(req, try, until)
		pause, again := r.again(req, a, try, until)
		if !again {
			return a.resp, a.err
		}
		a.discard()
		if err := sleep(req.Context(), pause); err != nil {
			closeBody(req)
			return nil, err
		}
		next, err := rewound(req)
		if err != nil {
			return nil, err
		}
		req = next
	}
}

// lend lets net/http, which repeats by itself, spend of the same budget.
func (r *retry) lend(req *http.Request) *http.Request {
	if t := marksOf(req.Context()).tally; t != nil {
		t.retries.Store(r.budget)
		return req
	}
	t := &tally{}
	t.retries.Store(r.budget)
	return req.WithContext(mark(req.Context(), func(m *marks) { m.tally = t }))
}

// until is when the time for all tries is over, zero for never.
func (r *retry) until(ctx context.Context) time.Time {
	deadline, given := ctx.Deadline()
	if !given && r.o.Within > 0 {
		return time.Now().Add(r.o.Within)
	}
	return deadline
}

// attempt is one request and as much of its answer as is read ahead.
func (r *retry) attempt(req *http.Request, try int, until time.Time) attempt {
	countTry(req.Context())
	next := r.next
	if _, given := req.Context().Deadline(); try > 1 && !given && !until.IsZero() {
		next = &timed{next, until}
	}
	resp, err := next.RoundTrip(req) //nolint:bodyclose // the caller of RoundTrip closes it, or the next attempt does
	a := attempt{resp: resp, err: err}
	switch {
	case err != nil || transient(resp.StatusCode):
	case marksOf(req.Context()).stream:
		a.cut = prefetchFirst(resp)
	default:
		a.cut = prefetch(resp, r.o.Prefetch)
	}
	return a
}

// again decides whether to repeat, and after which pause.
func (r *retry) again(req *http.Request, a attempt, try int, until time.Time) (time.Duration, bool) {
	if try >= r.o.Tries || !a.mayPass() || req.Context().Err() != nil || (hasBody(req) && req.GetBody == nil) {
		return 0, false
	}
	pause := r.pause(try)
	if a.resp != nil {
		asked := retryAfter(a.resp.Header)
		if asked > r.o.RetryAfterMax {
			return 0, false
		}
		pause = max(pause, asked)
	}
	if !until.IsZero() && time.Until(until) <= pause {
		return 0, false
	}
	return pause, r.budget.spend()
}

// pause has full jitter, so that callers who failed together do not return together.
func (r *retry) pause(try int) time.Duration {
	ceiling := r.o.Max
	if shift := try - 1; shift < 16 {
		ceiling = min(ceiling, r.o.Base<<shift)
	}
	return rand.N(ceiling + 1)
}

// attempt is what one request came to.
type attempt struct {
	resp *http.Response
	err  error // no answer
	cut  error // the answer ended early while it was read ahead
}

func (a attempt) mayPass() bool {
	if a.resp != nil && transient(a.resp.StatusCode) {
		return true
	}
	switch ReasonOf(errors.Join(a.err, a.cut)) {
	case Connect, Reset, CutShort:
		return true
	}
	return false
}

func (a attempt) discard() {
	if a.resp != nil {
		_ = a.resp.Body.Close()
	}
}

// transient tells whether a status may be gone a moment later.
func transient(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// rewound is the request for another try.
func rewound(req *http.Request) (*http.Request, error) {
	if !hasBody(req) {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, &Error{Reason: RequestBody, Op: Operation(req.Context()), Err: err}
	}
	out := req.WithContext(req.Context())
	out.Body = body
	return out, nil
}

func countTry(ctx context.Context) {
	if t := marksOf(ctx).tally; t != nil {
		t.tries.Add(1)
	}
}

// sleep waits, and gives up with the context.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// retryAfter reads the header in both its forms; what is missing or unreadable asks for nothing.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(max(0, min(seconds, 1<<20))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
