package proxy

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"

	"portico/mapping"
)

// codeClientGone, codeSlowClient and the like follow the rule of Portico's own codes: the last three digits are the status.
const (
	codeClientGone = 200000 + StatusClientGone
	codeSlowClient = 200000 + http.StatusRequestTimeout
)

// asError makes the error that a client sees of any error. What is not meant for clients is told in general words. handed
// says that a write was on its way to the tracker.
func asError(err error, handed bool) *mapping.Error {
	var known *mapping.Error
	var stream *mapping.StreamError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded):
		failed := failure(mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not answer in time.", err)
		failed.Unknown = handed
		return failed
	case errors.Is(err, context.Canceled):
		return failure(codeClientGone, mapping.ReasonCanceled, "The client did not wait for the answer.", err)
	case errors.As(err, &stream):
		return failure(mapping.CodeBadGateway, mapping.ReasonBadAnswer, "The tracker's answer broke off.", err)
	default:
		return internal(handed, err)
	}
}

// internal is the failure of Portico itself.
func internal(handed bool, cause error) *mapping.Error {
	if !handed {
		return failure(mapping.CodeInternal, mapping.ReasonInternal, "Something went wrong inside Portico.", cause)
	}
	failed := failure(mapping.CodeTimeout, mapping.ReasonInternal, "Something went wrong inside Portico while the tracker may have had this "+
		"request: it may have been carried out or not.", cause)
	failed.Unknown = true
	return failed
}

// reasonSlowClient is a reason that only this package has.
const reasonSlowClient mapping.Reason = "client-too-slow"

// cutReason says why an answer ended early: the tracker's side, our own, or else the client's.
func cutReason(err error) mapping.Reason {
	if _, stream := errors.AsType[*mapping.StreamError](err); stream {
		return mapping.ReasonBadAnswer
	}
	if _, store := errors.AsType[*mapping.BlobError](err); store {
		return mapping.ReasonInternal
	}
	return mapping.ReasonCanceled
}

func failure(code int, reason mapping.Reason, message string, cause error) *mapping.Error {
	return &mapping.Error{Code: code, Status: mapping.StatusOf(code), Message: message, Reason: reason, Err: cause}
}

// tooLarge refuses what is beyond a limit.
func tooLarge(code int, message string, cause error) *mapping.Error {
	return failure(code, mapping.ReasonTooLarge, message, cause)
}

// causeText is what a log may say of a cause. Errors of HTTP clients name the URL, and credentials travel in the query of
// one, so only what lies beneath is told.
func causeText(err error) string {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Op + ": " + address.Err.Error()
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Op + ": " + path.Err.Error()
	}
	return err.Error()
}
