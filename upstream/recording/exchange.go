package recording

import (
	"regexp"
	"strings"

	"portico/mapping"
)

// Exchange is one recorded request with its response.
type Exchange struct {
	// Name distinguishes the exchange from the others of its file.
	Name string `json:"name"`
	// Operation is one of the seven of interface.md or any other word, empty when it is not known.
	Operation mapping.Operation `json:"op,omitempty"`
	// Note is for people.
	Note string `json:"note,omitempty"`
	// Reset says that the tracker's data was reset before this request.
	Reset bool `json:"reset,omitempty"`
	// Callers are the placeholders that stand for what was taken out of the request, without braces, such as caller-1.
	Callers []string `json:"callers,omitempty"`
	// Unsendable says why the request cannot be sent again; empty when it can.
	Unsendable string  `json:"unsendable,omitempty"`
	Request    Request `json:"-"`
	// Response is nil where the response is not part of the recording; the request still has to be sent, because it may change state.
	Response *Response `json:"-"`
}

// Request is a request as it was sent.
type Request struct {
	Method string `json:"method"`
	// Path holds path and query exactly as they stood in the request line, escapes and all.
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	// Body is nil when no body and no Content-Length were sent.
	Body []byte `json:"-"`
}

// Response is a response. Names of headers are in lower case.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"-"`
	// HTML stands for a page whose text is not recorded.
	HTML    bool `json:"html,omitempty"`
	Elision `json:"-"`
}

// Elision describes a body that is not recorded in full. The zero value means that it is.
type Elision struct {
	// Length is the number of characters of the body, 0 where it is not known.
	Length int `json:"chars,omitempty"`
	// Size is the number of bytes, and SHA256 the digest in hexadecimal digits, empty where it is not known.
	Size   int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// OperationOf gives the operation that a request stands for; empty is none of the seven.
func OperationOf(method, target string) mapping.Operation {
	operation, _ := Segments(method, target)
	return operation
}

// Segments gives the same, with the segments of the path that name what the request is about: product and component, or an id.
func Segments(method, target string) (operation mapping.Operation, segments []string) {
	path, found := strings.CutPrefix(pathOf(target), "/rest")
	if !found {
		return "", nil
	}
	path = strings.TrimPrefix(path, ".cgi")
	for _, operation := range mapping.Operations() {
		if method != operation.Method() {
			continue
		}
		for _, pattern := range []string{operation.Path(), strings.TrimSuffix(operation.Path(), "/{component}")} { // which may be missing
			if segments, ok := match(pattern, path); ok {
				return operation, segments
			}
		}
	}
	return "", nil
}

// match gives the segments of a path for those that vary in a pattern. It returns false where the path is another one.
func match(pattern, path string) (segments []string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	for i, segment := range have {
		switch {
		case segment != "" && strings.HasPrefix(want[i], "{"):
			segments = append(segments, segment)
		case segment != want[i]:
			return nil, false
		}
	}
	return segments, true
}

var slashes = regexp.MustCompile(`/+`)

// pathOf gives the path of a target. Slashes are collapsed as trackers do (tracker-behaviour.md section 1, Paths).
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return slashes.ReplaceAllString(path, "/")
}
