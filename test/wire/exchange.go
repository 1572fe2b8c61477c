// Package wire reads recorded exchanges with real trackers, sends their requests byte for byte over a socket, and
// compares answers with the recorded ones by the rules of wire-facts.md, section 13.
package wire

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Exchange is one recorded request with its answer.
type Exchange struct {
	Name      string
	Operation string
	Note      string
	// Reset tells that the fixture was put back before this request.
	Reset   bool
	Request Request
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
	// Length is the number of characters of a body that is not recorded in full; 0 means that it is.
	Length int
}

// record is one line of a file of recordings.
type record struct {
	Name    string `json:"name"`
	Op      string `json:"op"`
	Note    string `json:"note"`
	Reset   bool   `json:"reset"`
	Request struct {
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Headers map[string]string `json:"headers"`
		Body    *string           `json:"body"`
		Base64  string            `json:"body_base64"`
		Elided  *elision          `json:"body_elided"`
	} `json:"request"`
	Response *struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		HTML    bool              `json:"html"`
		Elided  *elision          `json:"body_elided"`
	} `json:"response"`
}

// elision says what a shortened body was.
type elision struct {
	Chars  int    `json:"chars"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Load reads a file of recordings, one JSON object a line.
func Load(path string) ([]Exchange, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening recordings: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	var exchanges []Exchange
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading recording in line %d: %w", n, err)
		}
		e, err := r.exchange()
		if err != nil {
			return nil, fmt.Errorf("reading recording %s in line %d: %w", r.Name, n, err)
		}
		exchanges = append(exchanges, e)
	}
	return exchanges, lines.Err()
}

func (r *record) exchange() (Exchange, error) {
	e := Exchange{Name: r.Name, Operation: r.Op, Note: r.Note, Reset: r.Reset}
	e.Request = Request{Method: r.Request.Method, Path: r.Request.Path, Headers: r.Request.Headers}
	var err error
	switch {
	case r.Request.Base64 != "":
		e.Request.Body, err = base64.StdEncoding.DecodeString(r.Request.Base64)
	case r.Request.Elided != nil:
		e.Request.Body, err = restore(*r.Request.Body, *r.Request.Elided)
	case r.Request.Body != nil:
		e.Request.Body = []byte(*r.Request.Body)
	}
	if p := r.Response; p != nil {
		e.Response = &Response{Status: p.Status, Headers: p.Headers, Body: []byte(p.Body), HTML: p.HTML}
		if p.Elided != nil {
			e.Response.Length = p.Elided.Chars
		}
	}
	return e, err
}

// longestPeriod is the longest repeated piece that restore looks for.
const longestPeriod = 64

// restore fills in the middle of a shortened body: it repeats what stands before the gap. The digest proves it right.
func restore(short string, e elision) ([]byte, error) {
	head, tail, ok := strings.Cut(short, "…")
	gap := e.Bytes - len(head) - len(tail)
	if !ok || gap < 0 {
		return nil, fmt.Errorf("the shortened body of %d bytes has no gap", len(short))
	}
	for period := 1; period <= min(longestPeriod, len(head)); period++ {
		piece := head[len(head)-period:]
		whole := make([]byte, 0, e.Bytes)
		whole = append(whole, head...)
		whole = append(whole, strings.Repeat(piece, gap/period+1)[:gap]...)
		whole = append(whole, tail...)
		if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) == e.SHA256 {
			return whole, nil
		}
	}
	return nil, fmt.Errorf("the shortened body of %d bytes cannot be restored", e.Bytes)
}
