package proxy

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// Codes of this package follow the rule of Portico's own codes: the last three digits are the status.
const (
	codeClientGone = 200000 + StatusClientGone
	codeSlowClient = 200000 + http.StatusRequestTimeout
)

// fail writes an error. It is the only place where a request gets one; what net/http refuses before there is a
// request gets its form from Listener.
func (rc *requestContext) fail(err error) {
	failed := asError(err, rc.sent)
	rc.record.Reason, rc.cause = failed.Reason, failed.Err
	if failed.Reason == mapping.ReasonBreakerOpen || failed.Reason == mapping.ReasonOverload {
		rc.server.refused.Store(time.Now().UnixNano())
	}
	header := rc.Header()
	for _, name := range []string{"Etag", "Set-Cookie", "Age", "Cache-Status"} {
		header.Del(name)
	}
	setCommonHeaders(header)
	setErrorHeaders(header, failed)
	if failed.FromTracker() {
		rc.setCacheHeaders()
	}
	text := errorBody(failed, rc.server.options.DocumentationURL)
	if rc.form.page {
		text = indented(text)
	}
	status, document := failed.Status, mapping.NewDocument(text)
	if rc.form.rpc != nil {
		document = rc.form.rpc.Fault(failed)
		if failed.FromTracker() || status < http.StatusInternalServerError && failed.Reason != mapping.ReasonWebServer {
			status = http.StatusOK
		}
	}
	// A client that cannot be reached any more needs no second error.
	_ = rc.write(status, document)
}

// errorBody renders an error compactly, error first: one client looks at the first bytes only (docs/reference/clients.md duty 15).
// A tracker's error without a code stays without one.
func errorBody(failed *mapping.Error, documentation string) []byte {
	var members mapping.Members
	members.Set("error", jsontext.Value("true"))
	if failed.Code != 0 {
		members.Set("code", jsontext.Value(strconv.Itoa(failed.Code)))
	}
	members.SetText("message", failed.Message)
	members.SetText("documentation", cmp.Or(failed.Documentation, documentation))
	return append(members, failed.Extra...).AppendJSON(nil)
}

// setErrorHeaders names the reason of Portico's own errors, when to come back, and how to log in: without its challenge no client
// responds to a web server that asks for a login.
func setErrorHeaders(header http.Header, failed *mapping.Error) {
	if failed.Reason != "" {
		reason := string(failed.Reason)
		if failed.Unknown {
			reason += "; outcome=unknown"
		}
		header.Set(headerReason, reason)
	}
	if failed.RetryAfter > 0 {
		header.Set("Retry-After", wholeSeconds(failed.RetryAfter+time.Second-1))
	}
	if failed.Challenge != nil {
		header["Www-Authenticate"] = failed.Challenge
	}
}

// Reasons that only this package has.
const (
	reasonSlowClient  mapping.Reason = "client-too-slow"
	reasonKeyRunning  mapping.Reason = "idempotency-running"
	reasonKeyMismatch mapping.Reason = "idempotency-mismatch"
)

// asError makes the error that a client sees of any error. What is not meant for clients is hidden behind a general message. sent says that a
// tracker may have got a write.
func asError(err error, sent bool) *mapping.Error {
	var known, failed *mapping.Error
	switch {
	case errors.As(err, &known):
		return known
	case is[*jsonblob.BlobError](err) && !sent:
		return mapping.StorageFull(err)
	case errors.Is(err, context.DeadlineExceeded):
		failed = mapping.NewError(mapping.CodeTimeout, mapping.ReasonTimeout, "The tracker did not respond in time.")
	case errors.Is(err, context.Canceled):
		failed = mapping.NewError(codeClientGone, mapping.ReasonCanceled, "The request was canceled before its response was here.")
	case is[*mapping.StreamError](err), is[*jsonblob.SyntaxError](err), is[*jsonblob.LimitError](err): // errors of a request are known ones
		failed = mapping.NewError(mapping.CodeBadGateway, mapping.ReasonBadResponse, "The tracker's response could not be read.")
	case sent:
		failed = mapping.NewError(mapping.CodeTimeout, mapping.ReasonInternal,
			"Something went wrong inside Portico while the tracker may have had this request: it may have been carried out or not.")
	default:
		failed = mapping.NewError(mapping.CodeInternal, mapping.ReasonInternal, "Something went wrong inside Portico.")
	}
	failed.Err, failed.Unknown = err, sent
	return failed
}

// cutReason says why a response broke off: because of the tracker, of Portico, or else of the client.
func cutReason(err error) mapping.Reason {
	if is[*mapping.StreamError](err) {
		return mapping.ReasonBadResponse
	}
	if is[*jsonblob.BlobError](err) {
		return mapping.ReasonInternal
	}
	return mapping.ReasonCanceled
}

// is reports whether an error is, or wraps, one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
