package recording

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// notKept is why a request without its body cannot be made again.
const notKept = "its body was not kept"

// Load reads a file of recordings as a whole.
func Load(path string) ([]Exchange, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening recordings: %w", err)
	}
	defer f.Close()
	var exchanges []Exchange
	in := NewReader(f)
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return exchanges, nil
		}
		if err != nil {
			return nil, err
		}
		exchanges = append(exchanges, e)
	}
}

// Reader reads exchanges one at a time. Members that it does not know are passed over.
type Reader struct {
	in   *bufio.Reader
	line int
}

// NewReader reads from a text of one JSON object a line.
func NewReader(text io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(text, 64<<10)} }

// Next gives the next exchange, and io.EOF when there is none. Other errors name the line.
func (r *Reader) Next() (Exchange, error) {
	for {
		line, err := r.in.ReadBytes('\n')
		r.line++
		if len(bytes.TrimSpace(line)) == 0 {
			if errors.Is(err, io.EOF) {
				return Exchange{}, io.EOF
			}
			if err != nil {
				return Exchange{}, fmt.Errorf("reading recordings: %w", err)
			}
			continue
		}
		var raw record
		if err := json.Unmarshal(line, &raw); err != nil {
			return Exchange{}, fmt.Errorf("reading the recording in line %d: %w", r.line, err)
		}
		e, err := raw.exchange()
		if err != nil {
			return Exchange{}, fmt.Errorf("reading the recording %s in line %d: %w", raw.Name, r.line, err)
		}
		return e, nil
	}
}

func (r *record) exchange() (Exchange, error) {
	e := Exchange{Name: r.Name, Operation: r.Op, Note: r.Note, Reset: r.Reset, Callers: r.Callers, Unsendable: r.Unsendable}
	e.Request = Request{Method: r.Request.Method, Path: r.Request.Path, Headers: r.Request.Headers}
	if e.Request.Method == "" || e.Request.Path == "" {
		return e, errors.New("there is no request in it")
	}
	body, missing, err := r.Request.text()
	if err != nil {
		return e, err
	}
	e.Request.Body = body
	if missing && e.Unsendable == "" {
		e.Unsendable = notKept
	}
	if r.Response != nil {
		e.Response, err = r.Response.response()
	}
	return e, err
}

// text gives the body of a request; missing tells that there was one and it is not in the file.
func (r *requestRecord) text() (body []byte, missing bool, err error) {
	switch {
	case r.Base64 != "":
		body, err = base64.StdEncoding.DecodeString(r.Base64)
		return body, false, err
	case r.Elided != nil && (r.Body == nil || *r.Body == ""):
		return nil, true, nil
	case r.Elided != nil:
		body, err = restore(*r.Body, *r.Elided)
		return body, false, err
	case r.Body != nil:
		return []byte(*r.Body), false, nil
	}
	return nil, false, nil
}

func (p *responseRecord) response() (*Response, error) {
	a := &Response{Status: p.Status, Headers: p.Headers, Body: []byte(p.Body), HTML: p.HTML}
	if p.Elided != nil {
		a.Length, a.Size, a.SHA256 = p.Elided.Chars, p.Elided.Bytes, p.Elided.SHA256
	}
	if p.Base64 == "" {
		return a, nil
	}
	body, err := base64.StdEncoding.DecodeString(p.Base64)
	a.Body = body
	return a, err
}

// longestPeriod is the longest repeated piece that restore looks for.
const longestPeriod = 64

// longestBody is the longest body, in bytes, that restore makes.
const longestBody = 256 << 20

// restore fills in the middle of a shortened body: it repeats what stands before the gap. The digest proves it right.
func restore(short string, e elision) ([]byte, error) {
	head, tail, ok := strings.Cut(short, "…")
	gap := int(e.Bytes) - len(head) - len(tail)
	if !ok || gap < 0 || e.Bytes > longestBody {
		return nil, fmt.Errorf("the shortened body of %d bytes has no gap, or too large a one", len(short))
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
