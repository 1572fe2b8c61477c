package bugzilla

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// What a web server before a tracker takes, in bytes (wire-facts.md section 1, Paths and methods). Beyond that it answers
// with a page of its own.
const (
	maxLine  = 8190 // of a request line
	maxField = 8190 // of a header field
)

// outgoing is a call with the caller's credentials where the dialect looks for them.
type outgoing struct {
	header http.Header
	// target is the path below the tracker's base with the query.
	target string
	// body are the credentials that go in the body.
	body mapping.Members
}

// prepare gives a call the form in which it goes out. A read whose request line gets too long, perhaps by the
// credentials only, becomes the same question by JSON-RPC, which has everything in the body. What no web server would take
// is refused.
func (c *Client) prepare(dialect mapping.Dialect, caller upstream.Caller, call *Call) (outgoing, error) {
	out := address(dialect, caller, call)
	if call.long != nil && c.lineLength(call, out) > maxLine {
		*call = call.long()
		out = address(dialect, caller, call)
	}
	if c.lineLength(call, out) > maxLine {
		return out, tooLong(mapping.CodeURILong, "The address of this request is too long for the tracker.")
	}
	for name, values := range out.header {
		if len(name)+len(": ")+len(values[0]) > maxField {
			return out, tooLong(mapping.CodeHeaderLong, "The header "+name+" of this request is too long for the tracker.")
		}
	}
	return out, nil
}

// address adds the credentials to a call.
func address(dialect mapping.Dialect, caller upstream.Caller, call *Call) outgoing {
	out, query := outgoing{header: requestHeader(caller, call), target: call.Path}, url.Values{}
	maps.Copy(query, call.Query)
	out.body = authorize(dialect, call, caller, query, out.header)
	if len(query) > 0 {
		out.target += "?" + encode(query)
	}
	return out
}

// encode writes a query. A comma means itself there, and lists are full of them.
func encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "%2C", ",") }

// lineLength is the length of the request line.
func (c *Client) lineLength(call *Call, out outgoing) int {
	return len(call.Method) + len(" ") + c.basePath + len(out.target) + len(" HTTP/1.1")
}

func tooLong(code int, message string) *mapping.Error {
	return own(code, mapping.ReasonTooLarge, message)
}
