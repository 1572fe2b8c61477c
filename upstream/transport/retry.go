package transport

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"portico/upstream"
)

const (
	retryPause    = 50 * time.Millisecond // the first pause is up to this long, the second one up to twice that
	retryShare    = 0.2                   // retries per read, on average
	retryBurst    = 10                    // retries that may be saved up
	maxRetryAfter = 2 * time.Second       // the longest Retry-After that is waited for; a response with a longer one is returned
	maxDate       = 5 * time.Minute       // how long a date in Retry-After counts: the clock of the tracker may be wrong
)

// repeat sends a request. A read that failed in a way that may pass is sent again before its caller has seen a byte. A write is
// sent once: repeating it could do it twice.
//
// Each attempt waits for a slot of its own, behind others, so that a call that pauses holds none, and each has its own verdict of the breaker.
func (c *call) repeat(req *http.Request) (*http.Response, error) {
	if err := c.refuse(); err != nil {
		closeBody(req)
		return nil, err
	}
	ctx := req.Context()
	var given bool
	if c.deadline, given = ctx.Deadline(); !given {
		c.deadline = time.Now().Add(c.stack.o.Base.HeaderTimeout)
	}
	if c.read {
		c.stack.budget.earn()
	}
	for {
		a := c.attempt(req)
		if c.read && a.resp != nil && !transient(a.resp.StatusCode) {
			a.prefetch()
		}
		pause, again := c.again(req, a)
		if !again {
			return a.deliver()
		}
		if a.resp != nil {
			_ = a.Close()
		}
		if !upstream.Pause(ctx, pause) {
			closeBody(req)
			return nil, contextError(ctx)
		}
		if hasBody(req) {
			body, err := req.GetBody()
			if err != nil {
				return nil, c.newError(RequestBody, 0, err)
			}
			req = req.WithContext(ctx)
			req.Body = body
		}
	}
}

// again decides whether to send a request again, and after which pause.
func (c *call) again(req *http.Request, a *attempt) (pause time.Duration, again bool) {
	hadEnded := a.connHadEnded(a.result())
	if !c.read || c.tries >= c.stack.o.Tries && !hadEnded || req.Context().Err() != nil || hasBody(req) && req.GetBody == nil {
		return 0, false
	}
	pause = rand.N(time.Duration(c.tries) * retryPause) // full jitter: callers that failed together do not return together
	switch reason := ReasonOf(a.result()); {
	case hadEnded:
		c.fresh, pause = true, 0
	case reason == "" && transient(a.resp.StatusCode):
		asked := RetryAfter(a.resp.Header)
		if pause = max(pause, asked); asked > maxRetryAfter {
			return 0, false
		}
	case reason != Connect && reason != Reset && reason != CutShort:
		return 0, false
	}
	return pause, time.Until(c.deadline) > pause && c.stack.budget.take(1)
}

// transient reports whether a status may be gone a moment later.
func transient(status int) bool {
	return status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout
}

// RetryAfter reads when a tracker wants to be asked again, as seconds or as a date; 0 when a response does not tell.
func RetryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return max(time.Millisecond, time.Duration(seconds)*time.Second)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(time.Millisecond, time.Until(at)), maxDate)
}

// budget keeps retries to a share of the reads: every read earns a fraction of a retry. When a tracker fails for everybody,
// retries add that share to its load and no more.
type budget struct {
	mu     sync.Mutex
	stored float64
}

// earn adds what one read earns.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored = min(retryBurst, b.stored+retryShare)
}

// take takes n retries if there is one, and reports whether there is. With 0 it only looks.
func (b *budget) take(n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stored < 1 {
		return false
	}
	b.stored -= n
	return true
}
