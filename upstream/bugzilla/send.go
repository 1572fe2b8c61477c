package bugzilla

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-resty/resty/v2"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/transport"
)

// newREST makes the resty client. It has no cookie jar, since cookies belong to
// one caller, follows no redirects, since credentials would go along, and leaves
// retries to upstream/transport.
func newREST(next http.RoundTripper) *resty.Client {
	client := resty.NewWithClient(&http.Client{Transport: next})
	client.SetDoNotParseResponse(true)
	client.SetPreRequestHook(func(_ *resty.Client, request *http.Request) error {
		if body := transport.CallOf(request.Context()).Payload; body != nil {
			request.Body, request.ContentLength = body.Open(), body.Len()
			request.GetBody = func() (io.ReadCloser, error) { return body.Open(), nil }
		}
		return nil
	})
	return client
}

// send makes the one HTTP request of a call, which it may change into another form first. The response's body is open.
func (c *Client) send(ctx context.Context, caller upstream.Caller, call *Call) (*http.Response, error) {
	dialect, shown := c.Dialect(ctx), caller
	if c.options.Keys != nil {
		var err error
		if shown, err = c.options.Keys(caller); err != nil {
			return nil, err
		}
	}
	out := c.prepare(dialect, shown, call)
	var payload transport.Payload
	if call.Body != nil {
		body, err := call.payload(out.body)
		if err != nil {
			return nil, err
		}
		if max := c.MaxBody(ctx); max > 0 && body.Len() > max {
			return nil, mapping.NewError(mapping.CodeTooLarge, mapping.ReasonTooLarge, "The tracker takes request bodies of up to %d bytes.", max)
		}
		payload = body
		out.header.Set("Content-Type", "application/json")
	}
	ctx = transport.With(ctx, func(t *transport.Call) {
		t.Operation, t.Reads = string(call.Operation), call.IsRead()
		t.Client, t.Pause, t.Shadow, t.Payload = caller.Identity(), dialect.Backoff, c.options.ForComparison, payload
	})
	request := c.rest.R().SetContext(ctx)
	request.Header = out.header
	response, err := request.Execute(call.Method, c.base+out.target)
	if err != nil {
		return nil, withoutURL(err)
	}
	return response.RawResponse, nil
}

// For marks a call for a caller that is sent over the same transport by other means, and whose response is streamed. One that writes is
// not repeated, although its method may only read. It does not wait for the tracker.
func (c *Client) For(ctx context.Context, operation mapping.Operation, caller upstream.Caller, writes bool) context.Context {
	return transport.With(ctx, func(t *transport.Call) {
		t.Operation, t.Stream, t.Writes, t.Client, t.Pause = string(operation), true, writes, caller.Identity(), c.dialect.Load().Backoff
	})
}

// MaxBody is the size in bytes of the largest request body to send; 0 means that
// there is no limit.
func (c *Client) MaxBody(ctx context.Context) int64 {
	return cmp.Or(c.options.MaxBody, c.Dialect(ctx).MaxBody)
}

// withoutURL drops the URL that net/http puts before an error, because its
// query may hold a credential.
func withoutURL(err error) error {
	if shown, ok := errors.AsType[*url.Error](err); ok {
		return shown.Err
	}
	return err
}

// requestHeader requests JSON, since Accept would turn the response to HTML
// (tracker-behaviour.md section 1, Representation), and names the client.
func requestHeader(caller upstream.Caller, call *Call) http.Header {
	header := http.Header{"Accept": {"application/json"}, "User-Agent": {"Portico"}}
	setIf(header, "User-Agent", caller.UserAgent)
	setIf(header, "X-Request-Id", caller.RequestID)
	setIf(header, "X-Forwarded-For", caller.Address)
	setIf(header, "Portico-Role", caller.Role)
	setIf(header, "If-None-Match", call.IfNoneMatch)
	return header
}

// document sends a planned call and returns the checked response. The body of a large read may still be arriving. A read whose
// bearer token the tracker refuses as an API key is sent again without it where the tracker itself ignores bearer tokens: the
// token may be that of a gateway.
func (c *Client) document(ctx context.Context, caller upstream.Caller, call Call, planned error) (*mapping.Document, error) {
	if planned != nil {
		return nil, planned
	}
	document, err := c.callInAnyForm(ctx, caller, call)
	refused, ok := errors.AsType[*mapping.Error](err)
	if ok && refused.Code == mapping.CodeBadKey && refused.FromTracker() && call.IsRead() && caller.Credentials.KeyIsBearer() &&
		!c.Dialect(ctx).HeaderCredentials {
		caller.Credentials.APIKey = ""
		return c.callInAnyForm(ctx, caller, call)
	}
	return document, err
}

// callInAnyForm sends a call, and a read that the web server refuses by JSON-RPC in its other forms.
func (c *Client) callInAnyForm(ctx context.Context, caller upstream.Caller, call Call) (*mapping.Document, error) {
	document, err := c.callOnce(ctx, caller, &call)
	refused, ok := errors.AsType[*mapping.Error](err)
	if !ok || call.RPC == "" || refused.Reason != mapping.ReasonWebServer {
		return document, err
	}
	if !c.options.HideKeys || !hasParameters(caller.Credentials) {
		for _, path := range call.paths {
			rest := Call{Operation: call.Operation, Method: http.MethodGet, Path: path, Query: url.Values{}}
			if document, err := c.callOnce(ctx, caller, &rest); err == nil {
				return document, nil
			}
		}
	}
	refused.Message = fmt.Sprintf("This request needs JSON-RPC, and the web server before the tracker refuses /jsonrpc.cgi: %d %s.",
		refused.Status, http.StatusText(refused.Status))
	return nil, refused
}

// callOnce sends one request. The call becomes the form in which it was sent.
func (c *Client) callOnce(ctx context.Context, caller upstream.Caller, call *Call) (document *mapping.Document, err error) {
	response, err := c.send(ctx, caller, call)
	if err == nil {
		document, err = c.receive(call, response)
	}
	if err != nil {
		return nil, failure(call, err)
	}
	return document, nil
}
