package recording

import "portico/upstream/canary"

// Exchange is one recorded request with its answer.
type Exchange struct {
	// Name tells the exchange from the others of its file.
	Name string
	// Operation is one of the seven of interface.md or any other word, empty when it is not known.
	Operation string
	// Note is for people.
	Note string
	// Reset tells that the tracker's data was put back before this request.
	Reset bool
	// Callers are the placeholders that stand for what was taken out of the request, without braces, such as caller-1.
	Callers []string
	// Unsendable says why the request cannot be made again; empty when it can.
	Unsendable string
	Request    Request
	// Response is nil where the answer is not part of the recording; the request still has to be made, because it may change state.
	Response *Response
}

// Request is a request as it was sent.
type Request struct {
	Method string
	// Path holds path and query exactly as they stood in the request line, escapes and all.
	Path    string
	Headers map[string]string
	// Body is nil when no body and no Content-Length were sent.
	Body []byte
}

// Response is an answer. Names of headers are in lower case.
type Response struct {
	Status  int
	Headers map[string]string
	Body    []byte
	// HTML stands for a page whose text is not recorded.
	HTML bool
	// Length is the number of characters of a body that is not recorded in full; 0 means that it is, or that only its Size is known.
	Length int
	// Size is the number of bytes of a body that is not recorded in full, and SHA256 its digest in hexadecimal digits, empty
	// where it is not known.
	Size   int64
	SHA256 string
	// long is what is compared of an answer that was got just now and is too long to be kept.
	long *canary.Payload
}

// record is one line of a file.
type record struct {
	Name       string          `json:"name"`
	Op         string          `json:"op,omitempty"`
	Note       string          `json:"note,omitempty"`
	Callers    []string        `json:"callers,omitempty"`
	Unsendable string          `json:"unsendable,omitempty"`
	Request    requestRecord   `json:"request"`
	Response   *responseRecord `json:"response"`
	Reset      bool            `json:"reset,omitempty"`
}

type requestRecord struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	Base64  string            `json:"body_base64,omitempty"`
	Elided  *elision          `json:"body_elided,omitempty"`
}

type responseRecord struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Base64  string            `json:"body_base64,omitempty"`
	HTML    bool              `json:"html,omitempty"`
	Elided  *elision          `json:"body_elided,omitempty"`
}

// elision says what a shortened body was.
type elision struct {
	Chars  int    `json:"chars,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}
