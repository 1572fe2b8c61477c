package proxy

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// members reads what a write says: its body, with the query's parameters above it, and without credentials. Checks are in
// the tracker's order: syntax, then credentials, then login, then fields (tracker-behaviour.md section 1, Credentials).
func (rc *requestContext) members() (mapping.Members, error) {
	members, err := rc.readBody()
	if err != nil {
		return nil, rc.bodyError(err)
	}
	if rc.caller.Credentials, err = credentials(rc.r.Header, rc.query, &members); err != nil {
		return nil, err
	}
	if err := rc.admit(); err != nil {
		return nil, err
	}
	if err := rc.needLogin(); err != nil {
		return nil, err
	}
	asked := slices.DeleteFunc(rc.query.members(false), func(each mapping.Member) bool { return isCredential(each.Name) })
	members = override(members, asked)
	callback := members.Take("callback")
	rc.written = members
	return members, rc.writeCallback(callback)
}

// needLogin refuses a caller without a credential.
func (rc *requestContext) needLogin() error {
	if rc.caller.Anonymous() {
		return mapping.NewError(mapping.CodeLoginRequired, mapping.ReasonLogin, "This needs a login or an API key.")
	}
	return nil
}

// writeCallback applies the callback of a write, from the query or else from the body. An update with one gets the response of a
// tracker, for which it is a field that nothing has (recorded as ft.update.callback). It is never sent on, since the tracker would
// frame its response, which could then not be read.
func (rc *requestContext) writeCallback(value jsontext.Value) (err error) {
	if value == nil {
		return nil
	}
	if value.Kind() != 'n' {
		name, ok := mapping.Text(value)
		if !ok {
			name = "-" // which no name has
		}
		if rc.form, err = rc.form.withCallback(name); err != nil {
			return err
		}
	}
	if !rc.record.Operation.IsCreate() {
		return mapping.Refuse(mapping.CodeUnknownField, "There is no field called %q.", "callback")
	}
	return nil
}

// readBody reads the body as its type says: the two form types are forms, everything else is JSON, and so is a body without
// a type, since interface.md knows nothing but JSON (docs/divergences.md).
func (rc *requestContext) readBody() (mapping.Members, error) {
	if coding := strings.TrimSpace(rc.r.Header.Get("Content-Encoding")); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, mapping.Refuse(mapping.CodeJSON, "The body must not be compressed.")
	}
	body, err := rc.boundedBody()
	if err != nil {
		return nil, err
	}
	switch kind, attributes := mediaType(rc.r.Header); kind {
	case "application/x-www-form-urlencoded":
		return rc.urlencodedOrJSON(body)
	case "multipart/form-data":
		return rc.multipart(body, attributes["boundary"])
	default:
		return rc.json(body)
	}
}

// json reads a JSON body. Nothing at all, null and 0 count as an empty object (tracker-behaviour.md section 1, Request bodies).
func (rc *requestContext) json(body io.Reader) (mapping.Members, error) {
	text, blobs, err := jsonblob.Split(nil, body, rc.splitOptions())
	rc.blobs = blobs
	if syntax, ok := errors.AsType[*jsonblob.SyntaxError](err); ok && syntax.Kind == jsonblob.SyntaxEmpty {
		return nil, nil
	}
	if err != nil || jsontext.Value(text).Kind() == 'n' || string(text) == "0" {
		return nil, err
	}
	return mapping.ParseMembers(text)
}

// splitOptions diverts the payload of an attachment create, and of nothing else: what no operation knows stays as it is.
func (rc *requestContext) splitOptions() jsonblob.SplitOptions {
	depth := -1
	if rc.record.Operation == mapping.OpCreateAttachment {
		depth = 1
	}
	return jsonblob.SplitOptions{
		Limits: rc.server.options.Limits.Limits, Size: rc.r.ContentLength, Depth: depth,
		Dir: rc.server.options.BlobDir, Files: rc.server.files, Hold: rc.bodyShare.take, Spare: rc.bodyShare.spare,
	}
}

// bodyError makes the error for a body that could not be read.
func (rc *requestContext) bodyError(err error) error {
	var syntax *jsonblob.SyntaxError
	var limit *jsonblob.LimitError
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = &jsonblob.LimitError{Kind: jsonblob.LimitBody, Max: tooLong.Limit}
	}
	switch {
	case is[*mapping.Error](err), is[*jsonblob.BlobError](err):
		return err
	case errors.As(err, &limit):
		rc.set("Connection", "close")
		code, reason := mapping.CodeTooLarge, mapping.ReasonTooLarge
		if limit.Kind == jsonblob.LimitDepth || limit.Kind == jsonblob.LimitNumber { // the tracker has a code of its own for nesting
			code, reason = mapping.CodeJSON, mapping.ReasonInvalid
		}
		return mapping.NewError(code, reason, "The request is too large: %s.", limit)
	case errors.As(err, &syntax) && syntax.Kind == jsonblob.SyntaxBase64:
		return mapping.BadBase64(err)
	case errors.As(err, &syntax):
		return mapping.Refuse(mapping.CodeJSON, "The request body is not valid JSON: %s.", syntax)
	}
	failed := mapping.Refuse(mapping.CodeJSON, "The request body could not be read.")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		rc.set("Connection", "close")
		failed = mapping.NewError(codeSlowClient, reasonSlowClient, "The request body did not arrive in time.")
	} else if gone := rc.r.Context().Err(); gone != nil {
		return gone
	}
	failed.Err = err
	return failed
}

// boundedBody is the client's body. Where it is longer than the limit, it ends with an *http.MaxBytesError.
func (rc *requestContext) boundedBody() (io.Reader, error) {
	limit := rc.server.options.Limits.Body
	if rc.r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	return http.MaxBytesReader(rc, rc.r.Body, limit), nil
}

// memory is what the bodies of all requests together, or their responses, may take up.
type memory struct {
	total int64
	used  atomic.Int64
}

// freeShare is what each request has in any case, so that large requests cannot keep the usual small ones out.
const freeShare = 16 << 10

// share is what one request has of the memory.
type share struct {
	of *memory
	// size is what was asked for, taken what the request took out of the memory for that and for what it could do without.
	size, taken, spared int64
}

// take asks for more.
func (s *share) take(more int) error {
	s.size += int64(more)
	lacking := s.size - freeShare - s.taken
	if lacking <= 0 {
		return nil
	}
	if s.of.used.Add(lacking) > s.of.total {
		s.of.used.Add(-lacking)
		return mapping.TryLater(mapping.ReasonOverload, nil, "Too many large requests are being read. Ask again later.")
	}
	s.taken += lacking
	return nil
}

// spare asks for memory that the request can do without: for larger buffers, and for payloads that need not go to a file at once.
// Half of the memory stays for what requests cannot do without.
func (s *share) spare(more int) bool {
	if s.of.used.Add(int64(more)) > s.of.total/2 {
		s.of.used.Add(-int64(more))
		return false
	}
	s.spared += int64(more)
	return true
}

// end gives everything back. It is called once.
func (s *share) end() {
	s.of.used.Add(-s.taken - s.spared)
}

// heldReader reads what is kept in memory, up to a limit for all that the request keeps there.
type heldReader struct {
	io.Reader
	rc *requestContext
}

// Read implements io.Reader. It asks for memory in small pieces, as the text comes.
func (h heldReader) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p[:min(len(p), freeShare)])
	if failed := h.rc.bodyShare.take(n); failed != nil {
		return 0, failed
	}
	if limit := int64(h.rc.server.options.Limits.Skeleton); h.rc.bodyShare.size > limit {
		return 0, &jsonblob.LimitError{Kind: jsonblob.LimitSkeleton, Max: limit}
	}
	return n, err
}

// mediaType returns the type of a body without parameters, empty where the header has no type, and the parameters.
func mediaType(header http.Header) (name string, attributes map[string]string) {
	given := header.Get("Content-Type")
	name, _, _ = strings.Cut(strings.ToLower(given), ";")
	_, attributes, _ = mime.ParseMediaType(given) // a mistake in them does not change the type
	return strings.TrimSpace(name), attributes
}
