package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// record is one line of a file.
type record struct {
	Exchange
	Request  request   `json:"request"`
	Response *response `json:"response"`
}

type request struct {
	Request
	storedBody
}

type response struct {
	Response
	storedBody
}

// storedBody is a body in a file: a text, or base64 where it is no UTF-8. Both are nil where a request had no body.
type storedBody struct {
	Text   *string  `json:"body"`
	Base64 []byte   `json:"body_base64,omitempty"`
	Elided *Elision `json:"body_elided,omitempty"`
}

// Reader reads exchanges one at a time. It ignores members that it does not know.
type Reader struct {
	in   *bufio.Scanner
	line int
}

// NewReader reads from a text of one JSON object a line, which may begin with a byte order mark.
func NewReader(text io.Reader) *Reader {
	in := bufio.NewScanner(text)
	in.Buffer(nil, 4*maxBody)
	return &Reader{in: in}
}

// Next gives the next exchange, and io.EOF when there is none. Other errors name the line.
func (r *Reader) Next() (Exchange, error) {
	for r.in.Scan() {
		r.line++
		line := bytes.TrimSpace(bytes.TrimPrefix(r.in.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		var raw record
		var e Exchange
		err := json.Unmarshal(line, &raw)
		if err == nil {
			e, err = raw.exchange()
		}
		if err != nil {
			return Exchange{}, fmt.Errorf("line %d of the recording is no exchange: %w", r.line, err)
		}
		return e, nil
	}
	return Exchange{}, cmp.Or(r.in.Err(), io.EOF)
}

func (r *record) exchange() (e Exchange, err error) {
	in, out := r.Request, r.Response
	e = r.Exchange
	e.Request = in.Request
	if e.Request.Method == "" || e.Request.Path == "" {
		return e, errors.New("it has no request")
	}
	e.Request.Body = in.content()
	switch {
	case in.Elided == nil:
	case len(e.Request.Body) > 0:
		e.Request.Body, err = restore(string(e.Request.Body), *in.Elided)
	default:
		e.Request.Body, e.Unsendable = nil, cmp.Or(e.Unsendable, bodyNotKept)
	}
	if out != nil {
		e.Response = &out.Response
		e.Response.Body = out.content()
		if out.Elided != nil {
			e.Response.Elision = *out.Elided
		}
	}
	return e, err
}

// content gives the body as far as it is in the file.
func (b *storedBody) content() []byte {
	if b.Base64 != nil || b.Text == nil {
		return b.Base64
	}
	return []byte(*b.Text)
}

// maxBody is the length in bytes of the longest body that is read or restored.
const maxBody = 256 << 20

// restore fills in the middle of a shortened body: it repeats what stands before the gap. The digest proves it right.
func restore(short string, e Elision) ([]byte, error) {
	head, tail, found := strings.Cut(short, "…")
	gap := int(e.Size) - len(head) - len(tail)
	if !found || gap < 0 || e.Size > maxBody {
		return nil, fmt.Errorf("the shortened body of %d bytes has no gap, or too large a one", len(short))
	}
	for period := 1; period <= min(64, len(head)); period++ {
		piece := head[len(head)-period:]
		whole := head + strings.Repeat(piece, gap/period+1)[:gap] + tail
		if sum := sha256.Sum256([]byte(whole)); hex.EncodeToString(sum[:]) == e.SHA256 {
			return []byte(whole), nil
		}
	}
	return nil, fmt.Errorf("the shortened body of %d bytes cannot be restored", e.Size)
}

// Write writes one exchange as one line. It writes what it is given: what must not be in a file is taken out by a Redactor
// before. Errors are those of the file.
func Write(to io.Writer, e Exchange) error {
	line := record{Exchange: e, Request: request{e.Request, stored(e.Request.Body)}}
	if r := e.Response; r != nil {
		line.Response = &response{*r, stored(append([]byte{}, r.Body...))}
		if r.Elision != (Elision{}) {
			line.Response.Elided = &r.Elision
		}
	}
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	if err := out.Encode(line); err != nil {
		return fmt.Errorf("writing the recording %s: %w", e.Name, err)
	}
	return nil
}

func stored(body []byte) storedBody {
	if body == nil || !utf8.Valid(body) {
		return storedBody{Base64: body}
	}
	text := string(body)
	return storedBody{Text: &text}
}
