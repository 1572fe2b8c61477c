package bugzilla

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

const (
	// headSize is how much of an answer is read before anything is decided;
	// nearly all answers without attachment data are smaller.
	headSize = 64 << 10
	// errorSize bounds an error body.
	errorSize = 1 << 20
)

// answer turns a response into a document, or into the tracker's own error. It
// closes the body unless a document streams it.
func (c *Client) answer(call *Call, response *http.Response) (*mapping.Document, error) {
	document, err := c.read(call, response)
	if page, ok := errors.AsType[*badAnswer](err); ok {
		err = misunderstood(response, page)
	}
	if said, ok := errors.AsType[*mapping.Error](err); ok {
		said.RetryAfter, said.Received = retryAfter(response.Header), response.StatusCode
		if response.StatusCode == http.StatusUnauthorized {
			said.Challenge = response.Header.Values("Www-Authenticate")
		}
	}
	if err != nil {
		return nil, errors.Join(doubted(call, response, err), response.Body.Close())
	}
	document.Status = response.StatusCode
	document.ContentType = response.Header.Get("Content-Type")
	document.ETag = response.Header.Get("Etag")
	document.Cookies, document.Tracker = response.Header.Values("Set-Cookie"), c.url
	return document, nil
}

// retryAfter reads when the tracker wants to be asked again, which some clients
// wait for (clients.md, section 4, row 20). It is a number of seconds or a date.
func retryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// doubted marks the error that something between here and the tracker made of a
// write, a gateway that lost the tracker: it cannot know what the tracker did.
// Another Portico says whether it knows.
func doubted(call *Call, response *http.Response, err error) error {
	var said *mapping.Error
	if !call.Operation.IsWrite() || !errors.As(err, &said) || !ofGateway(response.StatusCode, said) {
		return err
	}
	if verdict := response.Header.Get("Portico-Error"); verdict != "" && !strings.Contains(verdict, "outcome=unknown") {
		return err
	}
	said.Reason = mapping.ReasonBadAnswer
	markUnknown(said, howToCheck(call.Operation))
	return said
}

// ofGateway tells whether an error is that of a gateway which lost the tracker, by its status or because it has no code:
// every error of a tracker has one (wire-facts.md section 1, Errors).
func ofGateway(status int, said *mapping.Error) bool {
	lost := status == http.StatusBadGateway || status == http.StatusGatewayTimeout
	return lost || status >= http.StatusInternalServerError && said.Code == 0
}

func (c *Client) read(call *Call, response *http.Response) (*mapping.Document, error) {
	if response.StatusCode == http.StatusNotModified && call.IfNoneMatch != "" {
		return &mapping.Document{NotModified: true}, response.Body.Close()
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return nil, bad("the tracker answered with a redirect")
	}
	head, whole, err := readHead(response.Body, headSize)
	if err != nil {
		return nil, err
	}
	if first := bytes.TrimLeft(head, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return nil, bad("the tracker's answer is not a JSON object")
	}
	switch {
	case call.RPC != "":
		return c.unwrap(call, head, response)
	case whole:
		return wholeAnswer(call.Operation, head, response)
	case response.StatusCode >= 400 || startsAsError(head):
		return nil, longError(head, response)
	case call.Operation.IsWrite():
		return c.longWrite(call.Operation, head, response)
	default:
		return mapping.NewStream(head, newGuard(head, response.Body), response.ContentLength), nil
	}
}

// readHead reads up to limit bytes and tells whether that was all.
func readHead(body io.Reader, limit int64) (head []byte, whole bool, err error) {
	var buffer bytes.Buffer
	n, err := buffer.ReadFrom(io.LimitReader(body, limit))
	return buffer.Bytes(), n < limit, err
}

// wholeAnswer judges an answer that has arrived completely. A bad one stays open, for the breaker hears nothing of a
// closed one any more.
func wholeAnswer(operation mapping.Operation, text []byte, response *http.Response) (*mapping.Document, error) {
	if err := judge(operation, text, response.StatusCode); err != nil {
		return nil, err
	}
	return mapping.NewDocument(text), response.Body.Close()
}

// judge tells why a text is no success of an operation.
func judge(operation mapping.Operation, text []byte, status int) error {
	members, err := mapping.ParseMembers(text)
	if err != nil {
		return bad("the tracker's answer is not valid JSON")
	}
	if failed := trackerError(members, status); failed != nil {
		return failed
	}
	if !holdsDue(operation, members) {
		return bad("the tracker's answer does not hold what was asked for")
	}
	return nil
}

// longWrite judges the answer to a write that did not fit the head. Only reads stream: of a write a client must not be told
// that it succeeded before anybody has seen that.
func (c *Client) longWrite(operation mapping.Operation, head []byte, response *http.Response) (*mapping.Document, error) {
	document := mapping.NewStream(head, newGuard(head, response.Body), response.ContentLength)
	text, err := document.Load(c.split)
	if err != nil {
		return nil, err
	}
	if err := judge(operation, text, response.StatusCode); err != nil {
		return nil, errors.Join(err, document.Close())
	}
	return document, nil
}

// holdsDue tells whether a success has the members that its operation is about (wire-facts.md sections 2 to 7). An
// object without them says of a write neither that it was carried out nor that it was not.
func holdsDue(operation mapping.Operation, members mapping.Members) bool {
	has := func(name string, kind jsontext.Kind) bool { return members.Get(name).Kind() == kind }
	switch operation {
	case mapping.OpCreateFlagType:
		return (mapping.FlagTypeCreated{Document: mapping.NewDocument(members.AppendJSON(nil))}).ID() != 0
	case mapping.OpUpdateFlagTypes:
		return has("flagtypes", '[')
	case mapping.OpBugAttachments, mapping.OpAttachment:
		return has("bugs", '{') && has("attachments", '{')
	case mapping.OpCreateAttachment:
		return has("ids", '[') || has("attachments", '{') // the map of the dialect bmo
	case mapping.OpUpdateAttachments:
		return has("attachments", '[')
	default:
		return true // flag types are looked at when they are brought into their stable form
	}
}

// longError reads an error body that did not fit the head.
func longError(head []byte, response *http.Response) error {
	rest, whole, err := readHead(response.Body, errorSize)
	if err != nil {
		return err
	}
	members, err := mapping.ParseMembers(append(head, rest...))
	if err != nil || !whole {
		return bad("the tracker's error is not valid JSON or too long")
	}
	if failed := trackerError(members, response.StatusCode); failed != nil {
		return failed
	}
	return bad("the tracker's answer begins as an error and is none")
}

// startsAsError tells from the first member name whether an answer is an error.
// Success bodies have other names, in whatever order (wire-facts.md section 1).
func startsAsError(head []byte) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(head))
	if _, err := decoder.ReadToken(); err != nil {
		return false
	}
	name, err := decoder.ReadToken()
	if err != nil || name.Kind() != '"' {
		return false
	}
	switch name.String() {
	case "error", "code", "message", "documentation":
		return true
	default:
		return false
	}
}

// trackerError finds the tracker's error in an answer. It looks at the body
// first, because internal errors come with the status of a success
// (wire-facts.md section 1, Errors).
func trackerError(members mapping.Members, status int) error {
	is, ok := mapping.ParseBool(members.Get("error"))
	if (!ok || !is) && status < 400 {
		return nil
	}
	code, haveCode := mapping.Int(members.Get("code"))
	message, haveMessage := mapping.Text(members.Get("message"))
	if !haveCode && !haveMessage {
		return bad("the tracker answered with an error status and no error body")
	}
	if status < 400 {
		status = mapping.StatusOf(int(code))
	}
	return toldError(members, int(code), status, message)
}

// toldError makes the tracker's own error, which keeps the members that nobody here knows.
func toldError(members mapping.Members, code, status int, message string) *mapping.Error {
	documentation, _ := mapping.Text(members.Get("documentation"))
	extra := members.Clone()
	for _, name := range []string{"error", "code", "message", "documentation"} {
		extra.Take(name)
	}
	return &mapping.Error{Code: code, Status: status, Message: message, Documentation: documentation, Extra: extra}
}

// unwrap takes the result out of a JSON-RPC answer; it is the same object that
// REST gives (wire-facts.md section 1, Encoded characters).
func (c *Client) unwrap(call *Call, head []byte, response *http.Response) (*mapping.Document, error) {
	document := mapping.NewStream(head, response.Body, -1)
	text, err := document.Load(c.split)
	if err != nil {
		return nil, err
	}
	members, err := mapping.ParseMembers(text)
	if err != nil {
		return nil, errors.Join(bad("the tracker's JSON-RPC answer is not an object"), document.Close())
	}
	if failure := members.Get("error"); failure.Kind() == '{' {
		return nil, errors.Join(rpcError(failure), document.Close())
	}
	if failed := trackerError(members, response.StatusCode); failed != nil {
		return nil, errors.Join(failed, document.Close())
	}
	result := members.Get("result")
	inner, err := mapping.ParseMembers(result)
	if err != nil || !holdsDue(call.Operation, inner) {
		return nil, errors.Join(bad("the tracker's JSON-RPC answer has no result of this kind"), document.Close())
	}
	return document, document.Replace(result)
}

// rpcError translates an error of the JSON-RPC endpoint, whose codes are those
// of REST. The name that the protocol gives every error says nothing.
func rpcError(object jsontext.Value) error {
	members, err := mapping.ParseMembers(object)
	if err != nil {
		return bad("the tracker's JSON-RPC error is not an object")
	}
	code, haveCode := mapping.Int(members.Get("code"))
	message, haveMessage := mapping.Text(members.Get("message"))
	if !haveCode && !haveMessage {
		return bad("the tracker's JSON-RPC error says nothing")
	}
	members.Take("name")
	return toldError(members, int(code), mapping.StatusOf(int(code)), message)
}
