package bugzilla

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/charmap"

	"portico/mapping/jsonblob"
)

// Bounds of a call of XML-RPC: of its text without payloads, and of its elements, each of which takes memory, and on the stack for what is around it.
const (
	maxXMLText     = 1 << 20
	maxXMLElements = 20_000
	maxXMLDepth    = 100
)

// splitXML reads a call of XML-RPC, with placeholders for what is in elements named base64. Its errors are those of jsonblob.Split.
func splitXML(body io.Reader, options jsonblob.SplitOptions) (text []byte, blobs []*jsonblob.Blob, err error) {
	r := bufio.NewReaderSize(body, walkBuffer)
	for err == nil || errors.Is(err, bufio.ErrBufferFull) {
		var piece []byte
		piece, err = r.ReadSlice('>')
		if text = append(text, piece...); len(text) > maxXMLText {
			err = errNoForm
		} else if err == nil && options.Hold != nil {
			err = options.Hold(len(piece))
		}
		if err == nil && bytes.HasSuffix(text, []byte("<base64>")) {
			var blob *jsonblob.Blob
			if blob, err = jsonblob.BlobFromReader(untilMarkup{r}, options); err == nil {
				text, blobs = jsonblob.AppendPlaceholder(text, len(blobs)), append(blobs, blob)
			}
		}
	}
	return text, blobs, endOrError(err)
}

// untilMarkup is a text up to the next element.
type untilMarkup struct{ *bufio.Reader }

// Read implements io.Reader.
func (u untilMarkup) Read(p []byte) (int, error) {
	_, err := u.Peek(1)
	text, _ := u.Peek(min(len(p), u.Buffered()))
	text, _, found := bytes.Cut(text, []byte("<"))
	if found && len(text) == 0 {
		err = io.EOF
	}
	n := copy(p, text)
	_, _ = u.Discard(n)
	return n, err
}

// xmlDecoder reads a text in UTF-8, or in the encoding of single bytes that it declares, as PHP's and Perl's libraries do.
func xmlDecoder(text []byte) *xml.Decoder {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(label) {
		case "iso-8859-1", "us-ascii":
			return charmap.ISO8859_1.NewDecoder().Reader(in), nil
		case "windows-1252":
			return charmap.Windows1252.NewDecoder().Reader(in), nil
		}
		return nil, errNoForm
	}
	return decoder
}

// isBounded reports whether a text is within the bounds of its elements.
func isBounded(text []byte) bool {
	in := xmlDecoder(text)
	elements, depth := 0, 0
	for elements <= maxXMLElements && depth <= maxXMLDepth {
		switch token, _ := in.RawToken(); token.(type) {
		case nil:
			return true // where the text ends, or is not valid
		case xml.StartElement:
			elements, depth = elements+1, depth+1
		case xml.EndElement:
			depth--
		}
	}
	return false
}

// jsonOfXML returns a call of XML-RPC as one of JSON-RPC. The placeholders of payloads stay.
func jsonOfXML(text []byte) ([]byte, error) {
	var call struct {
		Method string    `xml:"methodName"`
		Params []xmlNode `xml:"params>param>value"`
	}
	if !isBounded(text) || xmlDecoder(text).Decode(&call) != nil || len(call.Params) != 1 {
		return nil, errNoForm
	}
	return json.Marshal(map[string]any{"method": strings.TrimSpace(call.Method), "params": call.Params[0].value("")})
}

// xmlNode is an element.
type xmlNode struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []xmlNode `xml:",any"`
}

// child returns the first element of a name, an empty one where there is none.
func (n xmlNode) child(name string) xmlNode {
	i := slices.IndexFunc(n.Children, func(child xmlNode) bool { return child.XMLName.Local == name })
	if i < 0 {
		return xmlNode{}
	}
	return n.Children[i]
}

// value returns the value of a parameter, which json.Marshal refuses if it is of another type than JSON has. Data that is a string is the
// content itself.
func (n xmlNode) value(name string) any {
	if len(n.Children) > 0 {
		n = n.Children[0]
	}
	switch n.XMLName.Local {
	case "struct":
		members := map[string]any{}
		for _, member := range n.Children {
			name := member.child("name").Text
			members[name] = member.child("value").value(name)
		}
		return members
	case "array":
		list := []any{}
		for _, item := range n.child("data").Children {
			list = append(list, item.value(""))
		}
		return list
	case "nil":
		return nil
	case "string", "value":
		if name == "data" {
			return []byte(n.Text)
		}
		return n.Text
	}
	return jsontext.Value(strings.TrimSpace(n.Text)) // a number, or the placeholder of a payload
}
