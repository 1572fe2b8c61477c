package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reason says in one word why a call got no usable answer. The set is closed, so it may label a metric.
type Reason string

// The reasons. Only ServerError never stands in an *Error: a 5xx is an answer to the caller, but a failure to a breaker.
const (
	BreakerOpen            Reason = "breaker_open"              // refused here, or released because the breaker opened meanwhile
	LimitFull              Reason = "limit_full"                // refused here: no slot, no room in the queue, or no slot in time
	Timeout                Reason = "timeout"                   // a deadline passed while the tracker had the call
	Connect                Reason = "connect"                   // no connection: refused, unreachable, name unknown, TLS failed
	Reset                  Reason = "reset"                     // the connection ended before the header of an answer was whole
	CutShort               Reason = "cut_short"                 // the connection ended inside the answer
	BadAnswer              Reason = "bad_answer"                // not HTTP, or not what was due (see Fail)
	ResponseHeaderTooLarge Reason = "response_header_too_large" // more header than MaxResponseHeaderBytes
	Canceled               Reason = "canceled"                  // the caller went away
	RequestBody            Reason = "request_body"              // the caller's body failed, lied about its length, or came too slowly
	ServerError            Reason = "server_error"              // status 5xx
	Other                  Reason = "other"                     // a mistake in the request, such as a missing host
)

// Error is the only error that the chain returns, from RoundTrip and from reading a body.
type Error struct {
	Reason     Reason
	Op         string        // from WithOperation, may be empty
	RetryAfter time.Duration // when asking again makes sense; 0 = not known
	Unknown    bool          // bytes of a write may have reached the tracker and no whole answer came: it may have happened
	Err        error         // the cause, may be nil
}

// Error names the operation and the reason. It never contains a URL: query strings carry credentials.
func (e *Error) Error() string {
	op := e.Op
	if op == "" {
		op = "call"
	}
	text := fmt.Sprintf("tracker %s: %s", op, e.Reason)
	if e.Unknown {
		text += " (outcome unknown)"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap makes errors.Is(err, context.Canceled) and the like work.
func (e *Error) Unwrap() error { return e.Err }

// Timeout lets a *url.Error around this one answer Timeout() as callers of net/http expect.
func (e *Error) Timeout() bool { return e.Reason == Timeout }

// ReasonOf gives the reason of any error: "" for nil, Other for what did not come from here.
func ReasonOf(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Reason
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Other
}

// OutcomeUnknown tells whether err leaves open if a write took place.
func OutcomeUnknown(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Unknown
}

// noAnswer tells whether the tracker was silent or unreachable, rather than answering badly.
func (r Reason) noAnswer() bool { return r == Connect || r == Reset || r == Timeout }

// nobodysFault tells whether a failure says nothing about the tracker.
func (r Reason) nobodysFault() bool {
	switch r {
	case Canceled, RequestBody, Other, BreakerOpen, LimitFull:
		return true
	}
	return false
}

// contextError turns the end of ctx into an *Error. A cause that is one already (a breaker that opened) keeps its say.
func contextError(ctx context.Context) *Error {
	e := &Error{Reason: Canceled, Op: Operation(ctx), Err: ctx.Err()}
	var cause *Error
	switch {
	case errors.As(context.Cause(ctx), &cause):
		e.Reason, e.RetryAfter, e.Err = cause.Reason, cause.RetryAfter, cause.Err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Reason = Timeout
	}
	return e
}
