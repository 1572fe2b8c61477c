package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// members reads what a write says: its body, with the query's parameters above it, and without credentials. Checks are in
// the tracker's order: syntax, then credentials, then login, then fields (wire-facts.md, section 1, Credentials).
func (x *exchange) members() (mapping.Members, error) {
	members, err := x.body()
	if err != nil {
		return nil, x.bodyError(err)
	}
	x.caller.Credentials, err = credentials(x.r.Header, x.query, &members)
	if err != nil {
		return nil, err
	}
	if err := x.admit(x.caller); err != nil {
		return nil, err
	}
	if x.caller.Anonymous() {
		return nil, loginRequired()
	}
	inBody := members.Take("callback")
	for _, each := range grouped(x.query) {
		if !isCredential(each.name) && each.name != "callback" {
			members.Set(each.name, each.value(false))
		}
	}
	return members, x.writeCallback(inBody)
}

// writeCallback heeds the callback of a write, which may stand in its body too; that of the query is heeded already, and beats
// it. An update with one is answered as by a tracker, for which it is a field that nothing has (recorded as ft.update.callback).
// It is never sent on, since the tracker frames its answer, and an answer that is not plain JSON cannot be read.
func (x *exchange) writeCallback(inBody jsontext.Value) (err error) {
	inQuery := len(x.query.all("callback")) > 0
	if !inQuery && inBody != nil && inBody.Kind() != 'n' {
		name, ok := mapping.Text(inBody)
		if !ok {
			return badCallback()
		}
		if x.as, err = x.as.framed(name); err != nil {
			return err
		}
	}
	updates := x.operation == mapping.OpUpdateFlagTypes || x.operation == mapping.OpUpdateAttachments
	if updates && (inQuery || inBody != nil) {
		return mapping.Refuse(mapping.CodeUnknownField, "There is no field called %q.", "callback")
	}
	return nil
}

func loginRequired() *mapping.Error {
	return failure(mapping.CodeLoginRequired, mapping.ReasonLogin, "This needs a login or an API key.", nil)
}

// body reads the body as its type says: the two form types are forms, everything else is JSON, and so is a body without
// a type, since interface.md knows nothing but JSON (docs/divergences.md).
func (x *exchange) body() (mapping.Members, error) {
	if coding := strings.TrimSpace(x.r.Header.Get("Content-Encoding")); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, mapping.Refuse(mapping.CodeJSON, "The body must not be compressed.")
	}
	limit := x.server.options.Limits.Body
	if x.r.ContentLength > limit {
		return nil, errTooLong(limit)
	}
	switch kind, attributes := mediaType(x.r.Header); kind {
	case "application/x-www-form-urlencoded":
		return x.urlencodedOrJSON(x.r.Body)
	case "multipart/form-data":
		return x.multipart(x.r.Body, attributes["boundary"])
	default:
		return x.json(x.r.Body)
	}
}

// urlencodedOrJSON reads a form, or JSON that was sent as one: curl says so of every body unless it is told otherwise. No
// form begins with a brace, because that would be escaped (docs/divergences.md).
func (x *exchange) urlencodedOrJSON(body io.Reader) (mapping.Members, error) {
	buffered := bufio.NewReader(body)
	for {
		next, err := buffered.Peek(1)
		switch {
		case err == nil && next[0] == '{':
			return x.json(buffered)
		case err != nil || !bytes.ContainsAny(next, " \t\r\n"):
			return x.urlencoded(buffered)
		}
		_, _ = buffered.Discard(1) // one byte was just seen
	}
}

// json reads a JSON body. Nothing at all, null and 0 count as an empty object (wire-facts.md, section 1, Request bodies).
func (x *exchange) json(body io.Reader) (mapping.Members, error) {
	text, blobs, err := mapping.Split(nil, body, x.splitOptions())
	x.blobs = blobs
	var syntax *mapping.SyntaxError
	if errors.As(err, &syntax) && syntax.Kind == mapping.SyntaxEmpty {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if kind := jsontext.Value(text).Kind(); kind == 'n' || string(text) == "0" {
		return nil, nil
	}
	return mapping.ParseMembers(text)
}

// splitOptions diverts the payload of an attachment create, and of nothing else: what no operation knows stays as it is.
func (x *exchange) splitOptions() mapping.SplitOptions {
	depth := -1
	if x.operation == mapping.OpCreateAttachment {
		depth = 1
	}
	return mapping.SplitOptions{
		Limits: x.server.options.Limits.Limits, Dir: x.server.options.BlobDir, Depths: []int{depth}, Hold: x.share.take,
	}
}

// bodyError makes the error for a body that could not be read.
func (x *exchange) bodyError(err error) error {
	var known *mapping.Error
	var syntax *mapping.SyntaxError
	var limit *mapping.LimitError
	var store *mapping.BlobError
	switch {
	case errors.As(err, &known), errors.As(err, &store):
		return err
	case errors.As(err, &limit):
		return x.limitError(limit)
	case errors.As(err, &syntax) && syntax.Kind.Base64():
		return mapping.BadBase64(err)
	case errors.As(err, &syntax):
		return mapping.Refuse(mapping.CodeJSON, "The request body is not valid JSON: %s.", syntax)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.w.Header().Set("Connection", "close")
		return failure(codeSlowClient, reasonSlowClient, "The request body did not arrive in time.", err)
	case x.r.Context().Err() != nil:
		return x.r.Context().Err()
	default:
		failed := mapping.Refuse(mapping.CodeJSON, "The request body could not be read.")
		failed.Err = err
		return failed
	}
}

// limitError refuses a body that asks for too much. Nesting has the tracker's own code for it.
func (x *exchange) limitError(limit *mapping.LimitError) error {
	x.w.Header().Set("Connection", "close")
	message := fmt.Sprintf("The request is too large: %s.", limit)
	if limit.Kind == mapping.LimitDepth || limit.Kind == mapping.LimitNumber {
		return mapping.Refuse(mapping.CodeJSON, "%s", message)
	}
	return tooLarge(mapping.CodeTooLarge, message, limit)
}

func errTooLong(limit int64) error {
	return &mapping.LimitError{Kind: mapping.LimitBody, Max: limit, Offset: limit}
}

// boundedBody ends with a *mapping.LimitError where a body is longer than it may be.
func boundedBody(body io.Reader, limit int64) io.Reader {
	if body == http.NoBody {
		return body
	}
	return &boundedReader{src: http.MaxBytesReader(nil, io.NopCloser(body), limit), limit: limit}
}

type boundedReader struct {
	src   io.Reader
	limit int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		err = errTooLong(b.limit)
	}
	return n, err
}
