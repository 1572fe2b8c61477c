package recording

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// multipart redacts a form of several parts. Its fields are read twice, by their places in the text and by mime/multipart;
// where the two do not agree nothing is kept.
func (s *sheet) multipart(body []byte, boundary string) (clean []byte, ok bool) {
	parts, ok := split(body, boundary)
	if !ok {
		return nil, false
	}
	in := multipart.NewReader(bytes.NewReader(body), boundary)
	var out []byte
	last := 0
	for _, p := range parts {
		field, err := in.NextRawPart()
		if err != nil || field.FormName() != p.name || field.FileName() != p.file || !plainParameter.MatchString(p.name) {
			return nil, false
		}
		content, err := io.ReadAll(field)
		if err != nil || !bytes.Equal(content, body[p.begin:p.end]) {
			return nil, false
		}
		if text, changed := s.field(p, string(content)); changed {
			out = append(append(out, body[last:p.begin]...), text...)
			last = p.end
		}
	}
	if _, err := in.NextRawPart(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return append(out, body[last:]...), true
}

// field gives what comes in place of the content of a field.
func (s *sheet) field(p formPart, content string) (text string, changed bool) {
	if hidden, secret := s.hide(p.name, content); secret {
		return hidden, true
	}
	if (p.name == "data" || p.file != "") && len(content) > s.redactor.maxData {
		s.spoilt(payloadGone)
		return elide(content), true
	}
	trimmed := strings.TrimSpace(content)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return "", false
	}
	clean, ok := s.json([]byte(content))
	if !ok {
		s.spoilt(unreadable)
		return hiddenText, true
	}
	return string(clean), true
}

// formPart is one field of a form, and where its content stands.
type formPart struct {
	name, file string
	begin, end int
}

// split finds the fields of a form. What stands before the first and after the last boundary must be nothing.
func split(body []byte, boundary string) (parts []formPart, ok bool) {
	mark := "--" + boundary
	if boundary == "" || !bytes.HasPrefix(body, []byte(mark+"\r\n")) {
		return nil, false
	}
	at := len(mark) + 2
	for {
		length := bytes.Index(body[at:], []byte("\r\n"+mark))
		if length < 0 {
			return nil, false
		}
		part, ok := fieldAt(body, at, at+length)
		if !ok {
			return nil, false
		}
		parts = append(parts, part)
		at += length + len(mark) + 2
		switch after := string(body[at:]); {
		case after == "--" || after == "--\r\n":
			return parts, true
		case !strings.HasPrefix(after, "\r\n"):
			return nil, false
		}
		at += 2
	}
}

// fieldAt reads the head of a field that stands between two offsets.
func fieldAt(body []byte, begin, end int) (formPart, bool) {
	head := bytes.Index(body[begin:end], []byte("\r\n\r\n"))
	if head < 0 {
		return formPart{}, false
	}
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(body[begin : begin+head+4]))).ReadMIMEHeader()
	if err != nil || header.Get("Content-Transfer-Encoding") != "" {
		return formPart{}, false
	}
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	if err != nil || kind != "form-data" {
		return formPart{}, false
	}
	field := multipart.Part{Header: header}
	return formPart{name: parameters["name"], file: field.FileName(), begin: begin + head + 4, end: end}, true
}
