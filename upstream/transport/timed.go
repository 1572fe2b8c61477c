package transport

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// timed gives up on a call whose answer has not begun by then. What comes after the header takes its own time.
type timed struct {
	next  http.RoundTripper
	until time.Time
}

var errNoTime = errors.New("no time is left for another try")

// RoundTrip makes one call.
func (t *timed) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	clock := time.AfterFunc(time.Until(t.until), func() { cancel(&Error{Reason: Timeout, Err: errNoTime}) })
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	clock.Stop()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	watch(ctx, resp, true, func(ending) { cancel(nil) })
	return resp, nil
}
