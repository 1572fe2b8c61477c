package bugzilla

import (
	"net/url"

	"portico/mapping"
)

// Call is one HTTP request to a tracker as planned, before credentials are
// added. Planning is a pure function of dialect and request, so that it can be
// shown and compared without sending anything.
type Call struct {
	// Operation is what the call stands for.
	Operation mapping.Operation
	// Method is GET, POST or PUT.
	Method string
	// Path is escaped and begins with a slash.
	Path string
	// Query holds no credentials.
	Query url.Values
	// Body is the JSON object to send; nil means none.
	Body mapping.Members
	// Data is the payload of an attachment create, kept out of Body.
	Data *mapping.Blob
	// RPC is the JSON-RPC method whose one parameter Body is; empty for REST.
	RPC string
	// IfNoneMatch is sent along when it is not empty.
	IfNoneMatch string
	// long makes the same question by JSON-RPC, for when its address gets too
	// long; nil where there is no such form.
	long func() Call
}

// IsRead tells whether sending the call twice is harmless, JSON-RPC reads
// included although they are sent by POST.
func (c *Call) IsRead() bool { return !c.Operation.IsWrite() }

// payload renders the body with its exact length. The credentials are merged
// here, so that a Call can be shown without them.
func (c *Call) payload(credentials mapping.Members) (*mapping.Joined, error) {
	members := append(c.Body.Clone(), credentials...)
	var blobs []*mapping.Blob
	if c.Data != nil {
		members.Set("data", mapping.AppendBlob(nil, c.Data, &blobs))
	}
	text := members.AppendJSON(nil)
	if c.RPC != "" {
		text = envelope(c.RPC, text)
	}
	return mapping.Join(text, blobs)
}

// envelope wraps the parameters of a JSON-RPC 1.0 call, the version that 5.0
// and 5.2 speak.
func envelope(method string, params []byte) []byte {
	var call mapping.Members
	call.SetText("method", method)
	call.Set("params", append(append([]byte{'['}, params...), ']'))
	call.Set("id", []byte("1"))
	return call.AppendJSON(nil)
}
