package bugzilla

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"portico/mapping"
	"portico/upstream/transport"
)

// headSize is how much of a response is read before anything is decided;
// nearly all responses without attachment data are smaller.
const headSize = 64 << 10

// receive turns a response into a document, or into the tracker's own error. It
// closes the body unless a document streams it.
func (c *Client) receive(call *Call, response *http.Response) (*mapping.Document, error) {
	document, err := c.read(call, response)
	if page, ok := errors.AsType[*badResponse](err); ok {
		err = unreadable(response, page)
	}
	if failed, ok := errors.AsType[*mapping.Error](err); ok {
		if failed.Code == mapping.CodeTrackerFailure {
			transport.Fail(response.Body, failed) // the status is that of a success
		}
		failed.RetryAfter, failed.Received = transport.RetryAfter(response.Header), response.StatusCode // some clients wait for it (docs/reference/clients.md duty 20)
		if response.StatusCode == http.StatusUnauthorized {
			failed.Challenge = response.Header.Values("Www-Authenticate")
		}
		if call.Operation.IsWrite() && isLost(response.StatusCode, failed) {
			failed.Reason = mapping.ReasonBadResponse
			markUnknown(failed, call.Operation.Check())
		}
	}
	if err != nil {
		return nil, errors.Join(err, document.Close(), response.Body.Close())
	}
	document.Status = response.StatusCode
	document.ContentType = response.Header.Get("Content-Type")
	document.ETag = response.Header.Get("Etag")
	document.Cookies, document.Tracker = response.Header.Values("Set-Cookie"), c.options.URL
	return document, nil
}

// isLost reports whether an error comes from a gateway which lost the tracker, and so cannot know what the tracker did. The status tells
// such an error, or that it has no code: every error of a tracker has one (tracker-behaviour.md section 1, Errors).
func isLost(status int, failed *mapping.Error) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout || status >= http.StatusInternalServerError && failed.Code == 0
}

// read returns the document of a response, also beside an error if it is to be closed. Only reads by REST stream: the client of a
// write must not get a success before the whole response was checked.
func (c *Client) read(call *Call, response *http.Response) (*mapping.Document, error) {
	status := response.StatusCode
	if status == http.StatusNotModified && call.IfNoneMatch != "" {
		return &mapping.Document{NotModified: true}, response.Body.Close()
	}
	if status/100 == 3 {
		return nil, &badResponse{text: "the tracker responded with a redirect", redirect: c.Redirect()}
	}
	head, err := transport.Head(response, headSize)
	if err != nil {
		return nil, err
	}
	if first := bytes.TrimLeft(head, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return nil, bad("the tracker's response is not a JSON object")
	}
	document := mapping.NewDocument(head)
	if len(head) == headSize {
		document = mapping.NewStream(head, newGuard(head, response.Body), response.ContentLength)
		if call.RPC == "" && call.IsRead() && status < 400 {
			return document, nil
		}
	}
	if err := c.check(call, document, status); err != nil {
		return document, err // the body of a short response stays open, because transport.Fail has no effect after Close
	}
	return document, response.Body.Close()
}

// check loads a document and returns why it is not a success of a call. Errors are found in the body first, because internal
// ones come with the status of a success (tracker-behaviour.md section 1, Errors). Of a JSON-RPC response only the result stays,
// which is the object that REST returns (section 1, Encoded characters).
func (c *Client) check(call *Call, document *mapping.Document, status int) error {
	text, err := document.Load(c.options.Split)
	if err != nil {
		return err
	}
	members, err := mapping.ParseMembers(text)
	if err != nil {
		return bad("the tracker's response is not valid JSON")
	}
	reported := members.Get("error")
	if call.RPC != "" && reported.Kind() == '{' {
		members, _ = mapping.ParseMembers(reported)
		members.Take("name") // which the protocol gives every error
		return trackerError(members, 0)
	}
	if failed, _ := mapping.ParseBool(reported); failed || status >= 400 {
		return trackerError(members, status)
	}
	if call.RPC != "" {
		text = members.Get("result")
		members, _ = mapping.ParseMembers(text)
		err = document.Replace(text)
	}
	if members == nil || !hasExpectedMembers(call.Operation, members) {
		return bad("the tracker's response does not hold what was asked for")
	}
	return err
}

// trackerError makes the tracker's own error of the members of one, and keeps the other members.
func trackerError(extra mapping.Members, status int) error {
	extra.Take("error")
	code, haveCode := mapping.Int(extra.Take("code"))
	message, haveMessage := mapping.Text(extra.Take("message"))
	documentation, _ := mapping.Text(extra.Take("documentation"))
	if !haveCode && !haveMessage {
		return bad("the tracker responded with an error that has neither code nor message")
	}
	if status < 400 {
		status = mapping.StatusOf(int(code))
	}
	return &mapping.Error{Code: int(code), Status: status, Message: message, Documentation: documentation, Extra: extra}
}

// badResponse is the error for a response that is not the tracker's JSON.
type badResponse struct {
	text string
	// unavailable is the Retry-After of a 503.
	unavailable time.Duration
	// redirect is the address to which the tracker redirects all requests, if it does.
	redirect string
}

func bad(text string) *badResponse { return &badResponse{text: text} }

// Error implements error.
func (e *badResponse) Error() string { return e.text }

// unreadable returns the error for a response that is not the tracker's JSON. With a status of 4xx it is the refusal of a
// web server or a gateway before the tracker. A client can cause such responses at will, so they must not open the breaker
// for the others. Everything else is a failure of the tracker.
func unreadable(response *http.Response, page *badResponse) error {
	if response.StatusCode/100 == 4 {
		refused := mapping.RefusedByServer(response.StatusCode)
		refused.Err = page
		return refused
	}
	transport.Fail(response.Body, page)
	if response.StatusCode == http.StatusServiceUnavailable {
		page.unavailable = transport.RetryAfter(response.Header)
	}
	return page
}
