package bugzilla

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/go-resty/resty/v2"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/transport"
)

// payloadKey carries a request's body past resty, which would read an
// io.Reader into memory as a whole.
type payloadKey struct{}

// newREST makes the resty client. It has no cookie jar, since cookies belong to
// one caller, follows no redirects, since credentials would go along, and leaves
// retries to upstream/transport.
func newREST(next http.RoundTripper) *resty.Client {
	client := resty.NewWithClient(&http.Client{Transport: unredirected{next}})
	client.SetLogger(quiet{})
	client.SetDoNotParseResponse(true)
	client.SetDisableWarn(true)
	client.SetPreRequestHook(func(_ *resty.Client, request *http.Request) error {
		if body, ok := request.Context().Value(payloadKey{}).(*mapping.Joined); ok {
			request.Body, request.ContentLength = body.Open(), body.Len()
			request.GetBody = func() (io.ReadCloser, error) { return body.Open(), nil }
		}
		return nil
	})
	return client
}

// unredirected takes the address of a redirect out of an answer, so that http.Client neither
// follows it nor fails at reading it: its error would show the address, and hide
// that a write has reached the tracker.
type unredirected struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u unredirected) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Location")
	}
	return response, err
}

// CloseIdleConnections passes http.Client's own call on.
func (u unredirected) CloseIdleConnections() {
	if next, ok := u.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// turnOf gives the wait for a slot of a transport that has slots.
func turnOf(next http.RoundTripper) func(ctx context.Context, method string) (_ context.Context, done func()) {
	if limited, ok := next.(*transport.Stack); ok {
		return limited.Turn
	}
	return func(ctx context.Context, _ string) (context.Context, func()) { return ctx, func() {} }
}

// send makes the one HTTP request of a call, which it may change into another form first. The response's body is open.
func (c *Client) send(ctx context.Context, caller upstream.Caller, call *Call) (*http.Response, error) {
	out, err := c.prepare(c.Dialect(ctx), caller, call)
	if err != nil {
		return nil, err
	}
	if call.Body != nil {
		body, err := call.payload(out.body)
		if err != nil {
			return nil, err
		}
		ctx = context.WithValue(ctx, payloadKey{}, body)
		out.header.Set("Content-Type", "application/json")
	}
	named := transport.WithOperation
	if call.IsRead() {
		named = transport.WithReadOperation
	}
	ctx = named(ctx, string(call.Operation))
	ctx, done := c.turn(ctx, call.Method)
	defer done()
	request := c.rest.R().SetContext(ctx)
	request.Header = out.header
	response, err := request.Execute(call.Method, c.base+out.target)
	if err != nil {
		return nil, withoutURL(err)
	}
	return response.RawResponse, nil
}

// withoutURL drops the URL that net/http puts before an error, because its
// query may hold a credential.
func withoutURL(err error) error {
	if shown, ok := errors.AsType[*url.Error](err); ok {
		return shown.Err
	}
	return err
}

// requestHeader asks for JSON, since Accept would turn the answer to HTML
// (wire-facts.md section 1, Representation), and names the client.
func requestHeader(caller upstream.Caller, call *Call) http.Header {
	header := http.Header{"Accept": {"application/json"}, "User-Agent": {"Portico"}}
	setIf(header, "User-Agent", caller.UserAgent)
	setIf(header, "X-Request-Id", caller.RequestID)
	setIf(header, "X-Forwarded-For", caller.Address)
	setIf(header, "Portico-Role", caller.Role)
	setIf(header, "If-None-Match", call.IfNoneMatch)
	return header
}

// quiet keeps resty's own messages, which may show a URL with a credential, out
// of the log.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}
