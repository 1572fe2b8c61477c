package bugzilla

import (
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// The scripts, besides that of REST, with which flag types can be changed: the two older interfaces, and the page that
// administrators use.
const (
	scriptJSONRPC   = "jsonrpc.cgi"
	scriptXMLRPC    = "xmlrpc.cgi"
	scriptFlagTypes = "editflagtypes.cgi"
)

// Script returns the script that a tracker runs for a decoded path. What follows it in the path means nothing to the tracker.
func Script(decoded string) string {
	script, _, _ := strings.Cut(path.Clean("/" + decoded)[1:], "/")
	return script
}

// IsRPC reports whether a script is one of the two older interfaces, whose bodies say what a request does.
func IsRPC(script string) bool { return script == scriptJSONRPC || script == scriptXMLRPC }

// ChangesFlagTypes reports whether a path segment, in any case of letters, names a script that can change flag types.
func ChangesFlagTypes(segment string) bool {
	lower := strings.ToLower(segment)
	return IsRPC(lower) || lower == scriptFlagTypes
}

// PageChangesFlagTypes reports whether a request to the page of administrators may change flag types. The page takes the parameters
// of its links as those of its forms, except with OPTIONS.
func PageChangesFlagTypes(script, method, query string) bool {
	reads := method == http.MethodGet || method == http.MethodHead
	return script == scriptFlagTypes && method != http.MethodOptions && (!reads || query != "")
}

// RPCCall is what the body of a call of the older interfaces says.
type RPCCall struct {
	// Method is the method, in a list of calls the last one that does not only read.
	Method string
	// WritesFlagTypes says that its method is a flag type write, in a list of calls all methods. A tracker refuses a body that
	// cannot be read.
	WritesFlagTypes bool
	// IsOperation says that it is one of the operations, or in a list of calls that one of them is.
	IsOperation bool
	// ShowsCredential says that it has a member for a credential.
	ShowsCredential bool
}

// IsOperation reports whether a method of the older interfaces is one of the operations.
func IsOperation(method string) bool {
	return operationOf(method) != "" || strings.HasPrefix(method, "FlagType.")
}

// readingMethod matches the methods of the older interfaces that are known to change nothing.
var readingMethod = regexp.MustCompile(`^[^.]*\.(?:get|search|fields|legal_values|history|comments|attachments|version|extensions|time|valid_login|` +
	`login|logout|parameters|possible_duplicates|last_audit_time)(?:_|$)`)

// IsReading reports whether a method of the older interfaces is known to change nothing.
func IsReading(method string) bool { return readingMethod.MatchString(method) }

// ReadCall reads a call of any length, in which attachments may come before the method. An error is one of body.
func ReadCall(script string, body io.Reader) (call RPCCall, err error) {
	var others bool
	method := func(name string) {
		if call.Method == "" || !IsReading(name) {
			call.Method = name
		}
		call.IsOperation = call.IsOperation || IsOperation(name)
		writes := name == "FlagType.create" || name == "FlagType.update"
		others = others || !writes
		call.WritesFlagTypes = writes && !others
	}
	if script == scriptXMLRPC {
		err = walkXML(body, func(name, text string) {
			switch {
			case name == "methodName" && call.Method == "":
				method(text)
			case name == "name":
				call.ShowsCredential = call.ShowsCredential || credentialName.MatchString(text)
			}
		})
		return call, err
	}
	level := 1
	err = WalkJSON(body, func(depth int, name, value string) {
		switch {
		case depth == 0 && value == "[":
			level = 2 // a list of calls
		case depth == level && name == "method":
			others = others && level == 2 // of two methods of one call the last one counts
			method(value)
		}
		call.ShowsCredential = call.ShowsCredential || credentialName.MatchString(name)
	})
	return call, err
}
