package bugzilla

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// operationOf returns the first operation with a method of the older interfaces, empty for none.
func operationOf(method string) mapping.Operation {
	for _, operation := range mapping.Operations() {
		if operation.RPC() == method {
			return operation
		}
	}
	return ""
}

// RPCOperation is one of the operations in the form of an older interface.
type RPCOperation struct {
	mapping.Operation
	// Params are the parameters, credentials among them, and Blobs the payloads in them, which the caller closes.
	Params mapping.Members
	Blobs  []*jsonblob.Blob
	// Selected is what the path names in REST, the first id or name; empty for none.
	Selected string
	// id is that of a call of JSON-RPC, nil of one of XML-RPC.
	id jsontext.Value
}

// errNoForm says that a call has no form as an operation.
var errNoForm = errors.New("the call has no form as an operation")

// ReadOperation reads a call of a media type as an operation. It returns nil for a call that is none, or has no form as one: several calls, a
// notification, another encoding, a type that a browser would send from any page. Its errors are those of storing the payload.
func ReadOperation(script, mediaType string, body io.Reader, options jsonblob.SplitOptions) (*RPCOperation, error) {
	o, isJSON := &RPCOperation{}, script == scriptJSONRPC
	if isJSON && !strings.HasPrefix(mediaType, "application/json") || !isJSON && !strings.HasSuffix(mediaType, "/xml") {
		return nil, nil
	}
	options.Depth = 0
	var text []byte
	var err error
	if isJSON {
		text, o.Blobs, err = jsonblob.Split(nil, body, options)
	} else if text, o.Blobs, err = splitXML(body, options); err == nil {
		text, err = jsonOfXML(text)
	}
	if err == nil && o.read(text, isJSON) {
		return o, nil
	}
	_ = jsonblob.CloseBlobs(o.Blobs)
	var store *jsonblob.BlobError
	var refused *mapping.Error
	if errors.As(err, &store) || errors.As(err, &refused) {
		return nil, err
	}
	return nil, nil
}

// read reads the text of a call of JSON-RPC.
func (o *RPCOperation) read(text []byte, hasID bool) bool {
	var call struct {
		Method string         `json:"method"`
		Params jsontext.Value `json:"params"`
		ID     jsontext.Value `json:"id"`
	}
	err := json.Unmarshal(text, &call)
	o.id = call.ID
	o.Operation = operationOf(call.Method)
	list := listOf(call.Params)
	if err != nil || o.Operation == "" || len(list) != 1 || hasID != (o.id.Kind() == '"' || o.id.Kind() == '0') {
		return false
	}
	if o.Params, err = mapping.ParseMembers(list[0]); err != nil {
		return false
	}
	_, hasContent := jsonblob.BlobAt(o.Params.Get("data"), o.Blobs)
	fits := len(o.Blobs) == 0 || len(o.Blobs) == 1 && hasContent && o.Operation == mapping.OpCreateAttachment
	return fits && o.choose()
}

// choose finds what the call is about.
func (o *RPCOperation) choose() bool {
	by := func(name string) bool {
		texts := Texts(o.Params.Get(name))
		if len(texts) > 0 {
			o.Selected = texts[0]
		}
		return len(texts) > 0
	}
	switch o.Operation {
	case mapping.OpFlagTypes:
		return by("product")
	case mapping.OpBugAttachments:
		if by("ids") {
			return true
		}
		o.Operation = mapping.OpAttachment
		return by("attachment_ids")
	case mapping.OpUpdateFlagTypes: // the path of REST takes digits for an id
		return by("ids") || !by("names") || strings.Trim(o.Selected, "0123456789") != ""
	}
	by("ids")
	return true
}

// Texts are the texts of a parameter that is a list or a text. What is no text is an empty one, which names nothing.
func Texts(value jsontext.Value) []string {
	list := listOf(value)
	texts := make([]string, len(list))
	for i := range list {
		texts[i], _ = mapping.Text(list[i])
	}
	return texts
}

// listOf are the items of a valid array, or a value that is there.
func listOf(value jsontext.Value) (list []jsontext.Value) {
	if value != nil && json.Unmarshal(value, &list) != nil {
		return []jsontext.Value{value}
	}
	return list
}
