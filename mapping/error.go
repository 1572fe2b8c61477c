package mapping

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DocumentationURL is the documentation member of every error body. Real 5.0
// and 5.2 trackers both send this address (tracker-behaviour.md section 1, Errors).
const DocumentationURL = "https://bugzilla.readthedocs.org/en/5.0/api/"

// Error is the only error that reaches a client. Its body is
// {"error": true, "code": int, "message": string, "documentation": string}
// (tracker-behaviour.md section 1, Errors).
type Error struct {
	// Code is the tracker's error code, or one of Portico's own; 0 when a tracker
	// gave none.
	Code int
	// Status is the HTTP status, 400 to 599.
	Status int
	// Received is the status that the tracker sent with it, which may be that of a
	// success; 0 when that is not known.
	Received int
	// Message is plain text; it never contains a credential.
	Message string
	// Documentation is a URL; empty means DocumentationURL.
	Documentation string
	// Extra keeps the other members of a tracker's error.
	Extra Members
	// Reason names why Portico itself made the error; empty when the
	// tracker made it. It is sent in the header Portico-Error.
	Reason Reason
	// RetryAfter, when positive, is sent as Retry-After in whole seconds.
	RetryAfter time.Duration
	// Challenge is how a web server before the tracker wants callers to log in, with
	// status 401 only. It is sent as WWW-Authenticate.
	Challenge []string
	// Unknown says that a write may or may not have been carried out.
	Unknown bool
	// ConnectionLost says that the tracker took the connection and ended it before it
	// had responded. ReasonUnreachable without it means that there was no connection.
	ConnectionLost bool
	// Err is the cause, for logs; clients never see it, and nothing stores it.
	Err error `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s (code %d, status %d)", e.Message, e.Code, e.Status)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// FromTracker reports whether the tracker made the error, rather than Portico.
func (e *Error) FromTracker() bool { return e.Reason == "" }

// Reason names why Portico itself responded with an error.
type Reason string

// Reasons of errors that Portico makes, as sent in the header Portico-Error.
const (
	ReasonInvalid      Reason = "invalid-request"
	ReasonLogin        Reason = "login-required"
	ReasonNoResource   Reason = "no-such-resource"
	ReasonInexpressive Reason = "not-expressible"
	ReasonTooLarge     Reason = "too-large"
	ReasonRateLimited  Reason = "rate-limited"
	ReasonTimeout      Reason = "tracker-timeout"
	ReasonUnreachable  Reason = "tracker-unreachable"
	ReasonBreakerOpen  Reason = "breaker-open"
	ReasonOverload     Reason = "overload"
	ReasonSwitchover   Reason = "switchover"
	ReasonBadResponse  Reason = "bad-answer"
	ReasonWebServer    Reason = "web-server"
	ReasonCanceled     Reason = "canceled"
	ReasonInternal     Reason = "internal"
)

// Codes of the tracker that Portico uses for its own refusals
// (tracker-behaviour.md section 11).
const (
	CodeRequired       = 50
	CodeNotFound       = 51
	CodeNotNumeric     = 52
	CodeBadParameter   = 53
	CodeNotScalars     = 58
	CodeBadBug         = 100
	CodeCommentLong    = 114
	CodeFlagStatus     = 129
	CodeBadLogin       = 300
	CodeBadKey         = 306
	CodeLoginRequired  = 410
	CodeBadAddress     = 501
	CodeContentType    = 601
	CodeFileName       = 603
	CodeSummary        = 604
	CodeDataEmpty      = 606
	CodeTypeName       = 1101
	CodeTypeText       = 1102
	CodeCCList         = 1103
	CodeSortkey        = 1104
	CodeJSON           = 32000
	CodeCallback       = 32611
	CodeNoResource     = 32614
	CodeUnknownField   = 67399
	CodeTargetType     = 68000
	CodeTrackerFailure = 100500
)

// Codes of Portico's own, outside every range that a tracker uses. Their last
// three digits are the HTTP status.
const (
	CodeKeyRunning  = 200409
	CodeTooLarge    = 200413
	CodeURILong     = 200414
	CodeKeyMismatch = 200422
	CodeRateLimited = 200429
	CodeInternal    = 200500
	CodeUnsupported = 200501
	CodeBadGateway  = 200502
	CodeUnavailable = 200503
	CodeTimeout     = 200504
)

// StatusOf gives the HTTP status that a real tracker sends with a code
// (tracker-behaviour.md section 1, Errors), and of Portico's own codes.
func StatusOf(code int) int {
	switch {
	case code == 51 || code == 101 || code == CodeNoResource:
		return http.StatusNotFound
	case code >= 300 && code <= 304, code == 410, code == 504, code == 505:
		return http.StatusUnauthorized
	case code == 102 || code == 106 || code == 109 || code == 110 || code == 113 || code == 115 || code == 120:
		return http.StatusUnauthorized
	case code == CodeTrackerFailure:
		return http.StatusInternalServerError
	case code > 200400 && code < 200600:
		return code - 200000
	default:
		return http.StatusBadRequest
	}
}

// RefusedByServer makes the error for a response of status 4xx that is a page rather than the tracker's own error: a web server
// or a gateway before the tracker has refused the request. Nearly always the tracker was not asked, but that is not certain.
func RefusedByServer(status int) *Error {
	text := strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
	return NewError(200000+status, ReasonWebServer, "A web server before the tracker refused this request: %s.", text)
}

// StorageFull makes the error for a payload that could not be stored, because the disk is full for example. cause is a *BlobError.
func StorageFull(cause error) *Error {
	err := NewError(CodeUnavailable, ReasonOverload, "Portico has no place for long content at the moment. Try again later.")
	err.RetryAfter, err.Err = 10*time.Second, cause
	return err
}

// NewError makes an error of Portico's own; the status follows from the code.
func NewError(code int, reason Reason, format string, args ...any) *Error {
	return &Error{Code: code, Status: StatusOf(code), Message: fmt.Sprintf(format, args...), Reason: reason}
}

// Refuse makes the error of a request that Portico refuses before the tracker sees it.
func Refuse(code int, format string, args ...any) *Error {
	return NewError(code, ReasonInvalid, format, args...)
}

// TryLater makes the error of a request that cannot be carried out now, and may be sent again after a second. cause is for logs, or nil.
func TryLater(reason Reason, cause error, message string) *Error {
	err := NewError(CodeUnavailable, reason, "%s", message)
	err.RetryAfter, err.Err = time.Second, cause
	return err
}

// Inexpressible makes the error of a request that the interface allows but
// that this tracker has no form for; sending less than was asked would be worse.
func Inexpressible(format string, args ...any) *Error {
	return NewError(CodeBadParameter, ReasonInexpressive, format, args...)
}

// NoFlagTypeWrites makes the error of a flag type create or update that the tracker has no form for.
func NoFlagTypeWrites() *Error {
	return NewError(CodeNoResource, ReasonInexpressive, "The tracker has no way to create or update flag types.")
}

// NoResource makes the error for a path or method that Portico does not have. The
// path is shown decoded and without /rest (tracker-behaviour.md section 1, Paths).
func NoResource(method, path string) *Error {
	return NewError(CodeNoResource, ReasonNoResource, "There is no REST resource for %q.", method+" "+path)
}
