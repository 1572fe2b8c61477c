package bugzilla

import (
	"context"
	"errors"

	"portico/mapping"
	"portico/upstream/transport"
)

// failure turns whatever went wrong with a call into the error that a client
// may see. What a tracker said itself stays as it is.
func failure(call *Call, err error) error {
	if said, ok := errors.AsType[*mapping.Error](err); ok {
		return said
	}
	failed := classify(err)
	failed.Err = err
	if call.Operation.IsWrite() && (transport.OutcomeUnknown(err) || failed.Reason == mapping.ReasonBadAnswer) {
		markUnknown(failed, howToCheck(call.Operation))
	}
	return failed
}

// undecided takes back that a tracker has no flag types where it was asked for them before its dialect was known: each dialect has
// them elsewhere (wire-facts.md section 9). No client should conclude from that that the product has none.
func (c *Client) undecided(err error) error {
	said, ok := errors.AsType[*mapping.Error](err)
	if _, _, certain := c.Pinned(); certain || !ok || !said.FromTracker() || said.Code != mapping.CodeNoResource {
		return err
	}
	failed := own(mapping.CodeUnavailable, mapping.ReasonBadAnswer, "The tracker has not told yet which dialect it speaks.")
	failed.RetryAfter, failed.Err = retryVersion, said
	return failed
}

// Failure gives the error that a client may see of a request that was sent to
// the tracker by other means over the same transport; nil for no failure. Where
// the transport does not say so itself, nobody knows whether a write took place.
func Failure(err error, write bool) *mapping.Error {
	if err == nil {
		return nil
	}
	failed := classify(err)
	failed.Err = withoutURL(err)
	_, known := errors.AsType[*transport.Error](err)
	if write && (!known || transport.OutcomeUnknown(err)) {
		markUnknown(failed, "Look whether it took effect before sending it again.")
	}
	return failed
}

// classify gives code, status and reason by the kind of failure.
func classify(err error) *mapping.Error {
	if known, ok := errors.AsType[*transport.Error](err); ok {
		failed := classifyTransport(known.Reason)
		failed.RetryAfter = known.RetryAfter
		return failed
	}
	if page, ok := errors.AsType[*badAnswer](err); ok && page.unavailable > 0 {
		failed := own(mapping.CodeUnavailable, mapping.ReasonBadAnswer, "The tracker says that it is not available at the moment.")
		failed.RetryAfter = page.unavailable
		return failed
	}
	switch {
	case isBadAnswer(err):
		return own(mapping.CodeBadGateway, mapping.ReasonBadAnswer, "The tracker's answer could not be understood.")
	case errors.Is(err, context.DeadlineExceeded):
		return own(mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not answer in time.")
	case errors.Is(err, context.Canceled):
		return own(mapping.CodeUnavailable, mapping.ReasonCanceled, "The request was given up.")
	default:
		return own(mapping.CodeInternal, mapping.ReasonInternal, "Portico could not make this request.")
	}
}

func classifyTransport(reason transport.Reason) *mapping.Error {
	switch reason {
	case transport.BreakerOpen:
		return own(mapping.CodeUnavailable, mapping.ReasonBreakerOpen, "The tracker is not answering; it is given a moment to recover.")
	case transport.LimitFull:
		return own(mapping.CodeUnavailable, mapping.ReasonOverload, "The tracker has as many requests as it can take.")
	case transport.Timeout:
		return own(mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not answer in time.")
	case transport.Connect, transport.Reset:
		failed := own(mapping.CodeBadGateway, mapping.ReasonUnreachable, "The tracker cannot be reached.")
		failed.ConnectionLost = reason == transport.Reset
		return failed
	case transport.CutShort, transport.BadAnswer, transport.ResponseHeaderTooLarge:
		return own(mapping.CodeBadGateway, mapping.ReasonBadAnswer, "The tracker's answer could not be understood.")
	case transport.Canceled:
		return own(mapping.CodeUnavailable, mapping.ReasonCanceled, "The request was given up.")
	default:
		return own(mapping.CodeInternal, mapping.ReasonInternal, "Portico could not make this request.")
	}
}

func isBadAnswer(err error) bool {
	var bad *badAnswer
	var syntax *mapping.SyntaxError
	var limit *mapping.LimitError
	return errors.As(err, &bad) || errors.As(err, &syntax) || errors.As(err, &limit)
}

func own(code int, reason mapping.Reason, message string) *mapping.Error {
	return &mapping.Error{Code: code, Status: mapping.StatusOf(code), Message: message, Reason: reason}
}

// markUnknown says of a write that nobody knows whether it happened, and how to
// find out. It is never repeated here, for it might then happen twice, and nobody is told when to repeat it either.
func markUnknown(failed *mapping.Error, advice string) {
	failed.RetryAfter = 0
	failed.Code, failed.Status, failed.Unknown = mapping.CodeTimeout, mapping.StatusOf(mapping.CodeTimeout), true
	failed.Message = "The tracker got this request, but its answer was lost: it may have been carried out or not. " + advice
}

func howToCheck(operation mapping.Operation) string {
	switch operation {
	case mapping.OpCreateFlagType:
		return "Read the flag types of a product it applies to before creating it again."
	case mapping.OpUpdateFlagTypes:
		return "Read the flag types of a product it applies to; sending the same update again does no harm."
	case mapping.OpCreateAttachment:
		return "List the attachments of the bug before sending it again."
	default:
		return "Read the attachment; sending the same fields again does no harm, but flags and comments may double."
	}
}
