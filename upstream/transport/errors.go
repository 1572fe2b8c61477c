package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// Reason says in one word why a call got no usable response. The set is closed, so it may label a metric.
type Reason string

// The reasons. ServerError never stands in an *Error: a 5xx is a response to the caller, but a failure to a breaker.
const (
	BreakerOpen            Reason = "breaker_open"              // refused here, or released because the breaker opened meanwhile
	LimitFull              Reason = "limit_full"                // refused here: no slot and no place in the queue, or no slot in time
	RateLimited            Reason = "rate_limited"              // refused here: the tracker has sent this client a 429
	Timeout                Reason = "timeout"                   // a deadline passed while the tracker had the call
	Connect                Reason = "connect"                   // no connection: refused, unreachable, name unknown, TLS failed
	Reset                  Reason = "reset"                     // the connection ended before the header of a response was whole
	CutShort               Reason = "cut_short"                 // the connection ended inside the response
	BadResponse            Reason = "bad_answer"                // not HTTP, or not what was due (see Fail)
	ResponseHeaderTooLarge Reason = "response_header_too_large" // more header than 64 KiB
	Canceled               Reason = "canceled"                  // the caller went away
	RequestBody            Reason = "request_body"              // the request's body failed or was shorter than declared
	ServerError            Reason = "server_error"              // status 5xx
	Other                  Reason = "other"                     // a mistake in the request, such as a missing host
)

// Error is the only error of a Stack, from RoundTrip and from reading a body.
type Error struct {
	Reason     Reason
	Op         string        // the Operation of the Call, may be empty
	RetryAfter time.Duration // when asking again makes sense; 0 = not known
	Unknown    bool          // bytes of a write may have reached the tracker and no whole response came: it may have been carried out
	Err        error         // the cause, may be nil
}

// Error names the operation and the reason. It never contains a URL: query strings carry credentials.
func (e *Error) Error() string {
	text := fmt.Sprintf("tracker %s: %s", cmp.Or(e.Op, "call"), e.Reason)
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

// ReasonOf returns the reason of any error: "" for nil, Other for what did not come from here.
func ReasonOf(err error) Reason {
	e, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return ""
	case ok:
		return e.Reason
	}
	return Other
}

// cause says in words why the tracker failed.
func (s *Stack) cause(reason Reason) string {
	switch reason {
	case Connect:
		return *cmp.Or(s.noConn.Load(), new("no connection"))
	case Timeout:
		return "no response in time"
	case Reset, CutShort:
		return "it closed the connection before its response was whole"
	case ServerError:
		return "its responses have status 5xx, or are not those of a tracker"
	case BadResponse:
		return "what it sends is not the response of a tracker"
	}
	return string(reason)
}

// connectCause says why there is no connection, without the address.
func connectCause(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Err
	}
	return err.Error()
}

// OutcomeUnknown reports whether err leaves open if a write took place.
func OutcomeUnknown(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Unknown
}

// silent reports whether no response came, rather than a bad one.
func (r Reason) silent() bool { return r == Connect || r == Reset || r == Timeout }

// failed reports whether the tracker failed. The client or Portico caused the other reasons.
func (r Reason) failed() bool {
	switch r {
	case "", Canceled, RequestBody, Other, BreakerOpen, LimitFull, RateLimited:
		return false
	}
	return true
}

// contextError returns the end of ctx as an *Error. A cause that is an *Error, such as that of an opening breaker, is kept.
func contextError(ctx context.Context) *Error {
	e := &Error{Reason: Canceled, Err: ctx.Err()}
	if cause, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		*e = *cause
	} else if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Reason = Timeout
	}
	e.Op = CallOf(ctx).Operation
	return e
}

// isOwnShortage reports whether Portico has no file, port or memory left for a connection, which is not a failure of the tracker.
func isOwnShortage(err error) bool {
	return isOneOf(err, syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM)
}

// isAlert reports whether the tracker sent a TLS alert. With TLS 1.3 it refuses a certificate only after the handshake.
func isAlert(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// isLost reports whether the tracker closed the connection.
func isLost(err error) bool {
	return isOneOf(err, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, http.ErrBodyReadAfterClose)
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// discreet returns err without the tracker's own text: net/http quotes what it cannot read, and that may be a cookie or a token.
func discreet(err error) error {
	if isLost(err) {
		return err
	}
	return errors.New("what the tracker sent is not HTTP")
}
