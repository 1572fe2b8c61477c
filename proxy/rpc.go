package proxy

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// callLimit is how much of a call of the older interfaces is looked at. Longer ones carry attachments.
const callLimit = 1 << 20

// The scripts, besides that of REST, with which flag types can be changed: the two older interfaces, and the page that
// administrators use.
const (
	scriptJSONRPC   = "jsonrpc.cgi"
	scriptXMLRPC    = "xmlrpc.cgi"
	scriptFlagTypes = "editflagtypes.cgi"
)

// scriptOf gives the script that a tracker runs for a decoded path. What follows it in the path means nothing to it.
func scriptOf(decoded string) string {
	script, _, _ := strings.Cut(path.Clean("/" + decoded)[1:], "/")
	return script
}

// carriesCall tells the requests whose bodies say whether they change flag types.
func carriesCall(r *http.Request) bool {
	script := scriptOf(r.URL.Path)
	return !isReading(r.Method) && (script == scriptJSONRPC || script == scriptXMLRPC)
}

// isFlagTypePage tells the requests to the page of administrators that may change flag types. It takes its links for forms.
func isFlagTypePage(r *http.Request) bool {
	return scriptOf(r.URL.Path) == scriptFlagTypes && (!isReading(r.Method) || r.URL.RawQuery != "")
}

// callChangesFlagTypes tells whether a call may change flag types. One whose method is not found counts: the tracker might
// find it.
func callChangesFlagTypes(script string, body []byte, whole bool) bool {
	var methods []string
	if script == scriptXMLRPC {
		if methods = xmlMethods(body); len(methods) == 0 {
			return true
		}
	} else {
		if !whole {
			return true // of members that come twice the last one counts, which may be in the rest
		}
		var err error
		if methods, err = jsonMethods(body); err != nil {
			return true
		}
	}
	return namesFlagTypeWrite(methods)
}

// jsonMethods gives the methods of a JSON-RPC call, or of a list of calls.
func jsonMethods(body []byte) ([]string, error) {
	// Trackers take what is no UTF-8 for Latin-1 (wire-facts.md, section 1), and members that come twice.
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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

// xmlMethods gives the methods of an XML-RPC call, of which there should be one, before its parameters. It reads as far as
// there is XML.
func xmlMethods(body []byte) []string {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	// Names of methods are ASCII, so what the other characters mean does not matter.
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	var methods []string
	for {
		token, err := decoder.Token()
		if err != nil {
			return methods
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "methodName" {
			continue
		}
		var name string
		if decoder.DecodeElement(&name, &start) == nil {
			methods = append(methods, strings.TrimSpace(name))
		}
	}
}
