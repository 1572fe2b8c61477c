package transport

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Call describes a call in its context. The zero value is usable.
type Call struct {
	Operation string   // names the call in errors and measurements; from a small fixed set
	Reads     bool     // the call only reads although its method could write: it may be repeated if the request has GetBody
	Writes    bool     // the call changes something although its method is GET: pages of old trackers do that
	Shadow    bool     // the call has the lowest priority; whether it reads or writes stays as it is
	Stream    bool     // the response must go out as it comes, so only its first bytes are read ahead
	MaxBody   int64    // bytes of a response body beyond which the call fails as a failure of the tracker; 0 = no limit
	Client    [16]byte // identifies the client; zero = none

	// Pause is for how long a client's calls are refused after a response with status 429 without Retry-After. Other clients are not affected.
	Pause time.Duration

	// Guard is asked before the request and before each part of its body is sent. After an error the rest is not sent. Nil is not asked.
	Guard func() error

	// Payload is the body of the request, for its client: libraries between the two would read an io.Reader into memory as a whole.
	Payload Payload
}

// Payload is a request body that can be opened again.
type Payload interface {
	Open() io.ReadCloser
	Len() int64
}

// mayBeSent asks the guard.
func (c Call) mayBeSent() error {
	if c.Guard == nil {
		return nil
	}
	return c.Guard()
}

type callKey struct{}

// With returns a context whose Call is that of ctx as changed by change.
func With(ctx context.Context, change func(*Call)) context.Context {
	c := CallOf(ctx)
	change(&c)
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf returns the Call of ctx.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// Class is the priority of a call. Lower classes are refused first.
type Class uint8

// The classes from the lowest to the highest.
const (
	Shadow Class = iota
	Read
	Write
)

// String returns the class as a metric label.
func (c Class) String() string { return [...]string{"shadow", "read", "write"}[c] }

// reads reports whether a request with this method may be sent more than once.
func (c Call) reads(method string) bool {
	return !c.Writes && (c.Reads || method == http.MethodGet || method == http.MethodHead)
}

func (c Call) class(method string) Class {
	switch {
	case c.Shadow:
		return Shadow
	case c.reads(method):
		return Read
	}
	return Write
}

// Sample is one finished call as its caller saw it, retries included.
type Sample struct {
	Operation string
	Class     Class
	Status    int           // 0 when there was no response
	Reason    Reason        // "" when a whole response came, whatever its status, or its reader closed it early
	Unknown   bool          // the outcome of a write is not known
	Tries     int           // requests, with those that net/http sent again; 0 when the call was refused before the first one
	Total     time.Duration // from the first request, which waits no more, to the end of the response body or to the error; 0 without one
	BytesIn   int64         // received of the response body
	BytesOut  int64         // of request bodies, every try
}

// Observer learns about every call, once, when its body has ended. Observe must not block; it runs in the goroutine that read or
// closed the body, or in one of its own when the call's context ended first.
type Observer interface {
	Observe(Sample)
}

// Trace begins to follow one call for a tracing system. It returns the request to send, which may be a copy with more
// headers, and the observer of the call; nil means that the call is not followed.
type Trace func(req *http.Request, begun time.Time) (*http.Request, Observer)
