package proxy

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// callLimit is the size up to which calls of the older interfaces are looked into. Longer ones carry attachments; a call
// that changes flag types is never so long.
const callLimit = 1 << 20

// mayChangeFlagTypes tells the paths, besides those of REST, where flag types can be changed: the two older interfaces, and
// the page that administrators use.
func mayChangeFlagTypes(path string) bool {
	switch path {
	case "/jsonrpc.cgi", "/xmlrpc.cgi", "/editflagtypes.cgi":
		return true
	default:
		return false
	}
}

// changesFlagTypes tells whether a call may change flag types. A call that cannot be read counts if it names such a
// method at all: the tracker might understand it better.
func changesFlagTypes(path string, body []byte, whole bool) bool {
	if path == "/editflagtypes.cgi" {
		return true
	}
	methods, err := []string(nil), error(nil)
	switch {
	case !whole:
		err = errors.New("too long")
	case path == "/jsonrpc.cgi":
		methods, err = jsonMethods(body)
	default:
		methods, err = xmlMethod(body)
	}
	if err != nil {
		return bytes.Contains(body, []byte("FlagType.create")) || bytes.Contains(body, []byte("FlagType.update"))
	}
	for _, method := range methods {
		if method == "FlagType.create" || method == "FlagType.update" {
			return true
		}
	}
	return false
}

// jsonMethods gives the methods of a JSON-RPC call, or of a list of calls.
func jsonMethods(body []byte) ([]string, error) {
	text, blobs, err := mapping.Split(nil, bytes.NewReader(body), mapping.SplitOptions{Tolerant: true, Depths: []int{-1}})
	if err != nil {
		return nil, err
	}
	if err := mapping.CloseBlobs(blobs); err != nil {
		return nil, err
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	var methods []string
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return methods, nil
		}
		if err != nil {
			return nil, err
		}
		within, length := decoder.StackIndex(decoder.StackDepth())
		isName := within == '{' && length%2 == 1
		if isName && decoder.StackDepth() <= 2 && token.String() == "method" {
			if value, err := decoder.ReadToken(); err == nil && value.Kind() == '"' {
				methods = append(methods, value.String())
			}
		}
	}
}

// xmlMethod gives the method of an XML-RPC call, which stands before its parameters.
func xmlMethod(body []byte) ([]string, error) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	// Names of methods are ASCII, so what the other characters mean does not matter.
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "methodName" {
			continue
		}
		var name string
		err = decoder.DecodeElement(&name, &start)
		return []string{strings.TrimSpace(name)}, err
	}
}
