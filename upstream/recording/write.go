package recording

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Writer writes exchanges, one JSON object a line. It writes what it is given: what shall not be in a file is taken out by
// a Redactor before.
type Writer struct{ to *json.Encoder }

// NewWriter writes to a text, one write a line.
func NewWriter(text io.Writer) *Writer {
	to := json.NewEncoder(text)
	to.SetEscapeHTML(false)
	return &Writer{to: to}
}

// Write adds one exchange. Errors are those of the text.
func (w *Writer) Write(e Exchange) error {
	line := record{Name: e.Name, Op: e.Operation, Note: e.Note, Reset: e.Reset, Callers: e.Callers, Unsendable: e.Unsendable}
	line.Request = requestRecord{Method: e.Request.Method, Path: e.Request.Path, Headers: e.Request.Headers}
	if line.Request.Headers == nil {
		line.Request.Headers = map[string]string{}
	}
	if e.Request.Body != nil {
		text, coded := spelt(e.Request.Body)
		line.Request.Base64 = coded
		if coded == "" {
			line.Request.Body = &text
		}
	}
	if p := e.Response; p != nil {
		text, coded := spelt(p.Body)
		line.Response = &responseRecord{Status: p.Status, Headers: p.Headers, Body: text, Base64: coded, HTML: p.HTML}
		if p.Length > 0 || p.Size > 0 {
			line.Response.Elided = &elision{Chars: p.Length, Bytes: p.Size, SHA256: p.SHA256}
		}
	}
	if err := w.to.Encode(line); err != nil {
		return fmt.Errorf("writing the recording %s: %w", e.Name, err)
	}
	return nil
}

// spelt gives a body as text where it is text, else in base64.
func spelt(body []byte) (text, coded string) {
	if utf8.Valid(body) {
		return string(body), ""
	}
	return "", base64.StdEncoding.EncodeToString(body)
}
