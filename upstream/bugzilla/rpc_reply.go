package bugzilla

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// ContentType is the type of the response.
func (o *RPCOperation) ContentType() string {
	if o.id == nil {
		return "text/xml"
	}
	return "application/json; charset=UTF-8"
}

// Reply returns a reply of REST as the tracker would have sent it in the form of the call. The caller closes document after that.
func (o *RPCOperation) Reply(document *mapping.Document, options jsonblob.SplitOptions) (*mapping.Document, error) {
	text, err := document.Load(options)
	if err != nil {
		return nil, err
	}
	if o.Operation == mapping.OpCreateFlagType {
		members, _ := mapping.ParseMembers(text)
		members.Take("flag_id") // which only Portico adds
		text = members.AppendJSON(nil)
	}
	if o.id != nil {
		return document, document.Replace(o.envelope("null", text))
	}
	const begin = "<base64>"
	var parts []io.Reader
	size, rest := int64(0), xmlResponse("params", element("param", "", xmlValue("", text)))
	for i, blob := range document.Blobs() {
		before, after, _ := bytes.Cut(rest, jsonblob.AppendPlaceholder([]byte(begin), i))
		parts, rest = append(parts, bytes.NewReader(before), strings.NewReader(begin), blob.Reader()), after
		size += int64(len(before)+len(begin)) + blob.EncodedLen()
	}
	all := io.MultiReader(append(parts, bytes.NewReader(rest))...)
	return mapping.NewStream(nil, io.NopCloser(all), size+int64(len(rest))), nil // clients of XML-RPC want a length
}

// Fault returns an error in the form of the call.
func (o *RPCOperation) Fault(failed *mapping.Error) *mapping.Document {
	code, message := "faultCode", "faultString"
	if o.id != nil {
		code, message = "code", "message"
	}
	text, _ := json.Marshal(map[string]any{code: failed.Code, message: failed.Message}, jsontext.AllowInvalidUTF8(true))
	if o.id != nil {
		return mapping.NewDocument(o.envelope(string(text), []byte("null")))
	}
	return mapping.NewDocument(xmlResponse("fault", xmlValue("", text)))
}

// envelope is a response of JSON-RPC 1.0. To one of version 1.1 a tracker responds in that version, but no
// known client makes such a call of an operation.
func (o *RPCOperation) envelope(failed string, result []byte) []byte {
	return []byte(`{"error":` + failed + `,"id":` + string(o.id) + `,"result":` + string(result) + "}")
}

func element(name, text string, within ...xmlNode) xmlNode {
	return xmlNode{XMLName: xml.Name{Local: name}, Text: text, Children: within}
}

func xmlResponse(name string, content xmlNode) []byte {
	text, _ := xml.Marshal(element("methodResponse", "", element(name, "", content))) // which never fails on elements
	return append([]byte(`<?xml version="1.0" encoding="UTF-8"?>`), text...)
}

// xmlValue returns a value with the type that a tracker gives it, without members that are null, as trackers do. name is that of its member.
func xmlValue(name string, value jsontext.Value) xmlNode {
	var within []xmlNode
	kind := "boolean"
	text, _ := mapping.Text(value)
	switch value.Kind() {
	case '{':
		kind = "struct"
		members, _ := mapping.ParseMembers(value)
		for _, member := range members {
			if member.Value.Kind() != 'n' {
				within = append(within, element("member", "", element("name", member.Name), xmlValue(member.Name, member.Value)))
			}
		}
	case '[':
		data := element("data", "")
		for _, item := range listOf(value) {
			data.Children = append(data.Children, xmlValue("", item))
		}
		kind, within = "array", []xmlNode{data}
	case 'n':
		kind = "nil"
	case '0':
		kind = "int"
		if name == "data" {
			kind, text = "base64", string(value) // a placeholder
		}
	case '"':
		kind = "string"
		when, err := time.Parse(time.RFC3339, text)
		if name == "data" {
			kind = "base64"
		} else if err == nil && (strings.HasSuffix(name, "_time") || strings.HasSuffix(name, "_date")) {
			kind, text = "dateTime.iso8601", when.Format("20060102T15:04:05")
		}
	}
	return element("value", "", element(kind, text, within...))
}
