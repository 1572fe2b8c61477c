package bugzilla

import (
	"context"
	"errors"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream/transport"
)

// failure turns whatever went wrong with a call into the error that a client
// may see. An error of the tracker itself stays as it is.
func failure(call *Call, err error) error {
	if reported, ok := errors.AsType[*mapping.Error](err); ok {
		return reported
	}
	failed := classify(err)
	failed.Err = err
	_, store := errors.AsType[*jsonblob.BlobError](err)
	if call.Operation.IsWrite() && (transport.OutcomeUnknown(err) || failed.Reason == mapping.ReasonBadResponse || store) {
		markUnknown(failed, call.Operation.Check())
	}
	return failed
}

// Failure returns the error that a client may see of a request that was sent to
// the tracker by other means over the same transport. Where the transport does not
// report it itself, the outcome of a write is unknown.
func Failure(err error, write bool) *mapping.Error {
	failed := classify(err)
	failed.Err = err
	_, known := errors.AsType[*transport.Error](err)
	if write && (!known || transport.OutcomeUnknown(err)) {
		markUnknown(failed, "Check whether it took effect before sending it again.")
	}
	return failed
}

// classify returns code, status and reason by the kind of failure.
func classify(err error) *mapping.Error {
	known, isTransport := errors.AsType[*transport.Error](err)
	page, isPage := errors.AsType[*badResponse](err)
	_, isSyntax := errors.AsType[*jsonblob.SyntaxError](err)
	_, isLimit := errors.AsType[*jsonblob.LimitError](err)
	_, isStore := errors.AsType[*jsonblob.BlobError](err)
	switch {
	case isTransport:
		failed := ofReason(known.Reason)
		failed.RetryAfter = known.RetryAfter
		return failed
	case isPage && page.unavailable > 0:
		failed := mapping.NewError(mapping.CodeUnavailable, mapping.ReasonBadResponse, "The tracker says that it is not available at the moment.")
		failed.RetryAfter = page.unavailable
		return failed
	case isPage && page.redirect != "":
		return mapping.NewError(mapping.CodeBadGateway, mapping.ReasonBadResponse, "The tracker redirects all requests to %s instead of responding.", page.redirect)
	case isStore:
		return mapping.StorageFull(err)
	case isPage || isSyntax || isLimit:
		return ofReason(transport.BadResponse)
	case errors.Is(err, context.DeadlineExceeded):
		return ofReason(transport.Timeout)
	case errors.Is(err, context.Canceled):
		return ofReason(transport.Canceled)
	}
	return ofReason("")
}

// ofReason returns the error for a failure of the transport.
func ofReason(reason transport.Reason) *mapping.Error {
	switch reason {
	case transport.BreakerOpen:
		return mapping.NewError(mapping.CodeUnavailable, mapping.ReasonBreakerOpen, "The tracker fails at the moment, so Portico does not send it this request. Send it again after the seconds in Retry-After.")
	case transport.LimitFull:
		return mapping.NewError(mapping.CodeUnavailable, mapping.ReasonOverload, "The tracker has as many requests as it can take.")
	case transport.RateLimited:
		return mapping.NewError(mapping.CodeRateLimited, mapping.ReasonRateLimited, "The tracker limits the request rate of this client. Retry later.")
	case transport.Timeout:
		return mapping.NewError(mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not respond in time.")
	case transport.Connect, transport.Reset:
		failed := mapping.NewError(mapping.CodeBadGateway, mapping.ReasonUnreachable, "The tracker cannot be reached.")
		failed.ConnectionLost = reason == transport.Reset
		return failed
	case transport.CutShort, transport.BadResponse, transport.ResponseHeaderTooLarge:
		return mapping.NewError(mapping.CodeBadGateway, mapping.ReasonBadResponse, "The tracker's response could not be understood.")
	case transport.Canceled:
		return mapping.NewError(mapping.CodeUnavailable, mapping.ReasonCanceled, "The request was canceled.")
	default:
		return mapping.NewError(mapping.CodeInternal, mapping.ReasonInternal, "Portico could not make this request.")
	}
}

// markUnknown turns an error into that of a write whose outcome is unknown, and adds how to
// find out. Such a write is never repeated, because it could be carried out twice, so there is no RetryAfter either.
func markUnknown(failed *mapping.Error, advice string) {
	failed.RetryAfter = 0
	failed.Code, failed.Status, failed.Unknown = mapping.CodeTimeout, mapping.StatusOf(mapping.CodeTimeout), true
	failed.Message = "The tracker got this request, but its response was lost: it may have been carried out or not. " + advice
}
