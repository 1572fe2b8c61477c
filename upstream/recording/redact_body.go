package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"regexp"
	"strings"
)

// requestBody gives the body of a request, nil where it is not kept.
func (s *sheet) requestBody(seen Seen) []byte {
	switch {
	case seen.BodyCut > 0:
		s.spoilt(tooLong)
		return nil
	case seen.Body == nil:
		return nil
	case len(seen.Body) > 0 && isPage(seen.Target):
		s.spoilt(pageInput)
		return nil
	}
	clean, ok := s.body(seen.Header, seen.Body)
	if !ok {
		s.spoilt(unreadable)
		return nil
	}
	return clean
}

// body redacts a body by what it is, whatever it is said to be: trackers take JSON of any type (wire-facts.md, section 1).
// What cannot be read is not kept.
func (s *sheet) body(header http.Header, body []byte) (clean []byte, ok bool) {
	if len(bytes.TrimSpace(body)) == 0 {
		return body, true
	}
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, false
	}
	kind, parameters, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		return s.multipart(body, parameters["boundary"])
	}
	if clean, ok = s.json(body); ok {
		return clean, true
	}
	if clean, ok = s.framed(body); ok {
		return clean, true
	}
	if clean, ok = s.xml(body); ok && bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		return clean, true
	}
	if kind == "application/x-www-form-urlencoded" {
		text, good := s.pairs(string(body))
		return []byte(text), good
	}
	return nil, false
}

var callbackFrame = regexp.MustCompile(`(?s)^(/\*\*/[A-Za-z0-9_.\[\]]+\()(.*)(\);?\s*)$`)

// framed redacts JSON in the frame of a callback.
func (s *sheet) framed(body []byte) (clean []byte, ok bool) {
	parts := callbackFrame.FindSubmatch(body)
	if parts == nil {
		return nil, false
	}
	inner, ok := s.json(parts[2])
	return bytes.Join([][]byte{parts[1], inner, parts[3]}, nil), ok
}

// response redacts an answer.
func (s *sheet) response(seen Seen) *Response {
	p := &Response{Status: seen.Status, Headers: s.answerHeaders(seen.Answer)}
	kind, _, _ := mime.ParseMediaType(seen.Answer.Get("Content-Type"))
	size := max(int64(len(seen.Content)), seen.ContentCut)
	switch {
	case kind == "text/html":
		p.HTML = true
	case size == 0:
	case seen.ContentCut > 0:
		p.Size = size
	case isText(kind) && isPage(seen.Target):
		p.Size = size // it may hold tokens under names of any kind
	case isText(kind):
		clean, ok := s.body(seen.Answer, seen.Content)
		if p.Body = clean; !ok {
			p.Size = size
		}
	default:
		sum := sha256.Sum256(seen.Content)
		p.Size, p.SHA256 = size, hex.EncodeToString(sum[:])
	}
	return p
}

// isText tells the types of answers that are looked into. Others are files, of which only size and digest are kept.
func isText(kind string) bool {
	switch kind {
	case "application/json", "text/javascript", "application/javascript", "application/json-rpc", "text/xml", "application/xml":
		return true
	}
	return strings.HasSuffix(kind, "+json")
}
