package transport

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// Class is the priority of a call. Lower classes are sacrificed first (DESIGN.md section 7).
type Class uint8

// The classes, in their order of sacrifice.
const (
	Shadow Class = iota
	Read
	Write
	classes // their number
)

// String is the class as a metric label.
func (c Class) String() string {
	switch c {
	case Shadow:
		return "shadow"
	case Read:
		return "read"
	}
	return "write"
}

type marksKey struct{}

// marks is what the caller said about a call. One value, so that a call costs one look into the context.
type marks struct {
	op                          string
	read, write, shadow, stream bool
	most                        int64
	tally                       *tally
	turn                        *turn      // waited for before the call began
	client                      *stopwatch // for a breaker's trial: runs while the caller's own bytes are waited for
}

// tally collects what only the inner layers see, for Measure. The marks of a call bring one along, so that Measure needs no copy
// of the request for it.
type tally struct {
	taken   atomic.Bool            // by the call that it belongs to
	retries atomic.Pointer[budget] // which net/http spends too; nil where Retry is not in the chain
	tries   atomic.Int32
	out     atomic.Int64
}

// budget is that of the call's retries, nil where there is none.
func (m marks) budget() *budget {
	if m.tally == nil {
		return nil
	}
	return m.tally.retries.Load()
}

func marksOf(ctx context.Context) marks {
	m, _ := ctx.Value(marksKey{}).(marks)
	return m
}

func mark(ctx context.Context, change func(*marks)) context.Context {
	m := marksOf(ctx)
	change(&m)
	return context.WithValue(ctx, marksKey{}, m)
}

// WithOperation names the call for errors and measurements. Names must come from a small fixed set.
func WithOperation(ctx context.Context, name string) context.Context {
	return mark(ctx, func(m *marks) { m.op, m.tally = name, &tally{} })
}

// WithReadOperation is WithOperation and WithRead in one.
func WithReadOperation(ctx context.Context, name string) context.Context {
	return mark(ctx, func(m *marks) { m.op, m.read, m.write, m.tally = name, true, false, &tally{} })
}

// Operation is the name given by WithOperation, or "".
func Operation(ctx context.Context) string { return marksOf(ctx).op }

// WithRead says that the call only reads although its method could write: a JSON-RPC POST that asks.
// It may then be repeated (if the request has GetBody) and goes over kept-alive connections.
func WithRead(ctx context.Context) context.Context {
	return mark(ctx, func(m *marks) { m.read, m.write = true, false })
}

// WithWrite says that the call changes something although its method is GET: pages of old trackers do that.
func WithWrite(ctx context.Context) context.Context {
	return mark(ctx, func(m *marks) { m.read, m.write = false, true })
}

// WithShadow gives the call the lowest priority. Whether it reads or writes stays as it is.
func WithShadow(ctx context.Context) context.Context {
	return mark(ctx, func(m *marks) { m.shadow = true })
}

// WithMost gives up on an answer whose body has more than n bytes, as a failure of the tracker: such a one may never end.
func WithMost(ctx context.Context, n int64) context.Context {
	return mark(ctx, func(m *marks) { m.most = n })
}

// WithStream says that the answer must go out as it comes: no more than its first bytes are read ahead, so a body that is
// cut short after them is not asked for again.
func WithStream(ctx context.Context) context.Context {
	return mark(ctx, func(m *marks) { m.stream, m.tally = true, &tally{} })
}

// Streaming makes every call through next with WithStream.
func Streaming(next http.RoundTripper) http.RoundTripper { return streaming{next} }

type streaming struct{ next http.RoundTripper }

// RoundTrip makes one call.
func (s streaming) RoundTrip(req *http.Request) (*http.Response, error) {
	return s.next.RoundTrip(req.WithContext(WithStream(req.Context())))
}

// isRead tells whether a request may be sent more than once: GET, HEAD and what is marked so (DESIGN.md section 7).
func isRead(req *http.Request) bool { return reads(marksOf(req.Context()), req.Method) }

func reads(m marks, method string) bool {
	switch {
	case m.read:
		return true
	case m.write:
		return false
	}
	return method == "" || method == http.MethodGet || method == http.MethodHead
}

// ClassOf is the priority of a request.
func ClassOf(req *http.Request) Class { return classOf(req.Context(), req.Method) }

func classOf(ctx context.Context, method string) Class {
	switch m := marksOf(ctx); {
	case m.shadow:
		return Shadow
	case reads(m, method):
		return Read
	}
	return Write
}

// closeBody keeps the promise of every RoundTripper to close the request's body, where a layer answers by itself.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// hasBody tells whether there are bytes to send.
func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// failer is a body that can be told that what it held was not what was due.
type failer interface{ Fail(err error) }

// Fail reports that an answer, although whole, was not what was due (HTML where JSON was due): the breaker counts it
// as a failure and Measure reports BadAnswer. Call it with resp.Body before closing that; it tells whether it was heard.
func Fail(body io.Reader, err error) bool {
	f, ok := body.(failer)
	if ok {
		f.Fail(err)
	}
	return ok
}
