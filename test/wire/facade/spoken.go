package facade

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"portico/mapping"
	"portico/test/wire"
	"portico/upstream/recording"
)

// place is where in a request a field stands.
type place string

const (
	inPath  place = "path"
	inQuery place = "query"
	inBody  place = "body"
	inRPC   place = "parameter of JSON-RPC"
)

// said is the value of one field in one request.
type said struct {
	place place
	// value is JSON in one spelling, so that equal values are equal texts.
	value string
}

// shape tells arrays and objects from each other and from everything else.
func (s said) shape() string {
	if strings.HasPrefix(s.value, "[") || strings.HasPrefix(s.value, "{") {
		return s.value[:1]
	}
	return ""
}

// contentType gives the type of a recorded request's body.
func contentType(request wire.Request) string {
	for name, value := range request.Headers {
		if strings.EqualFold(name, "Content-Type") {
			return value
		}
	}
	return ""
}

// sayings lists what a request says, credentials and the callback apart, by the name of the field.
func sayings(operation mapping.Operation, method, target, contentType string, body []byte) map[string]said {
	found := map[string]said{}
	path, query, _ := strings.Cut(target, "?")
	if strings.HasSuffix(path, "/jsonrpc.cgi") {
		var call struct{ Params []map[string]any }
		if decode(body, &call) == nil && len(call.Params) == 1 {
			addObject(found, inRPC, call.Params[0])
		}
		return found
	}
	_, segments := recording.Segments(method, target)
	for i, name := range pathFields(operation) {
		if i < len(segments) {
			found[name] = said{inPath, text(unescape(segments[i], url.PathUnescape))}
		}
	}
	if operation.IsWrite() {
		addBody(found, contentType, body)
	}
	addList(found, inQuery, parseForm(query))
	return found
}

// addBody reads a body as Portico does: forms as forms, all else as JSON.
func addBody(found map[string]said, contentType string, body []byte) {
	kind, parameters, _ := mime.ParseMediaType(contentType) // what has no type is JSON
	var object map[string]any
	switch {
	case kind == "multipart/form-data":
		addMultipart(found, body, parameters["boundary"])
	case decode(body, &object) == nil:
		addObject(found, inBody, object)
	case kind == "application/x-www-form-urlencoded":
		addList(found, inBody, parseForm(string(body)))
	}
}

func addMultipart(found map[string]said, body []byte, boundary string) {
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	values := url.Values{}
	for part, err := form.NextPart(); err == nil; part, err = form.NextPart() {
		if value, err := io.ReadAll(part); err == nil {
			values.Add(part.FormName(), string(value))
		}
	}
	addList(found, inBody, values)
}

// parseForm reads a query or a form. What net/url does not take stays as it is written.
func parseForm(form string) url.Values {
	values := url.Values{}
	for piece := range strings.FieldsFuncSeq(form, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(piece, "=")
		values.Add(unescape(name, url.QueryUnescape), unescape(value, url.QueryUnescape))
	}
	return values
}

func unescape(escaped string, with func(string) (string, error)) string {
	if plain, err := with(escaped); err == nil {
		return plain
	}
	return escaped
}

func addList(found map[string]said, at place, values url.Values) {
	for name, list := range values {
		if !isCredential(name) && len(list) == 1 {
			found[name] = said{at, text(list[0])}
		} else if !isCredential(name) {
			found[name] = said{at, text(list)}
		}
	}
}

func addObject(found map[string]said, at place, object map[string]any) {
	for name, value := range object {
		if !isCredential(name) {
			found[name] = said{at, text(value)}
		}
	}
}

// isCredential reports whether a parameter is a credential, or says how the response is framed.
func isCredential(name string) bool {
	return slices.Contains([]string{
		"api_key", "Bugzilla_api_key", "login", "Bugzilla_login", "password", "Bugzilla_password", "token", "Bugzilla_token", "callback",
	}, name)
}

// decode reads JSON and keeps the spelling of numbers.
func decode(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// text spells a value in one way. Members of objects are sorted by encoding/json.
func text(value any) string {
	spelt, err := json.Marshal(value)
	if err != nil { // a number beyond all bounds
		return "?"
	}
	return string(spelt)
}
