package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// Codes of this package follow the rule of Portico's own codes: the last three digits are the status.
const (
	codeClientGone = 200000 + StatusClientGone
	codeSlowClient = 200000 + http.StatusRequestTimeout
)

// Reasons that only this package has.
const (
	reasonSlowClient  mapping.Reason = "client-too-slow"
	reasonKeyRunning  mapping.Reason = "idempotency-running"
	reasonKeyMismatch mapping.Reason = "idempotency-mismatch"
)

// asError makes the error that a client sees of any error. What is not meant for clients is hidden behind a general message. sent says that a
// tracker may have got a write.
func asError(err error, sent bool) *mapping.Error {
	var known *mapping.Error
	var stream *mapping.StreamError
	var syntax *jsonblob.SyntaxError
	var limit *jsonblob.LimitError
	var store *jsonblob.BlobError
	var failed *mapping.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &store) && !sent:
		return mapping.StorageFull(err)
	case errors.Is(err, context.DeadlineExceeded):
		failed = failure(mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not respond in time.", err)
	case errors.Is(err, context.Canceled):
		return failure(codeClientGone, mapping.ReasonCanceled, "The client did not wait for the response.", err)
	case errors.As(err, &stream), errors.As(err, &syntax), errors.As(err, &limit): // errors of a request are known ones
		failed = failure(mapping.CodeBadGateway, mapping.ReasonBadResponse, "The tracker's response could not be read.", err)
	case sent:
		failed = failure(mapping.CodeTimeout, mapping.ReasonInternal, "Something went wrong inside Portico while the tracker may have had this "+
			"request: it may have been carried out or not.", err)
	default:
		failed = failure(mapping.CodeInternal, mapping.ReasonInternal, "Something went wrong inside Portico.", err)
	}
	failed.Unknown = sent
	return failed
}

// cutReason says why a response broke off: because of the tracker, of Portico, or else of the client.
func cutReason(err error) mapping.Reason {
	if _, stream := errors.AsType[*mapping.StreamError](err); stream {
		return mapping.ReasonBadResponse
	}
	if _, store := errors.AsType[*jsonblob.BlobError](err); store {
		return mapping.ReasonInternal
	}
	return mapping.ReasonCanceled
}

func failure(code int, reason mapping.Reason, message string, cause error) *mapping.Error {
	return &mapping.Error{Code: code, Status: mapping.StatusOf(code), Message: message, Reason: reason, Err: cause}
}

// busy refuses a request that may be sent again after a while.
func busy(code int, reason mapping.Reason, wait time.Duration, message string) *mapping.Error {
	failed := failure(code, reason, message, nil)
	failed.RetryAfter = wait
	return failed
}

// causeText is what a log may say of a cause. Errors of HTTP clients name the URL, and credentials travel in the query of
// one, so only what lies below is told.
func causeText(err error) string {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Op + ": " + address.Err.Error()
	}
	return err.Error()
}
