package fastpath

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// fastRequest is one request and its response. It is used again for others, so that one costs little to collect.
type fastRequest struct {
	request http.Request
	address url.URL
	values  []string // of the request's header

	header http.Header
	body   []byte
	status int
	pause  time.Duration

	out bytes.Buffer
	// date is the text of its second, which most responses share with the one before.
	date   []byte
	second int64
}

const (
	// maxKept is the size in bytes above which buffers are not used again.
	maxKept = 64 << 10
	// defaultPause bounds the pauses of a client where the handler sets no write deadline.
	defaultPause = 30 * time.Second
)

func newRequest() any {
	return &fastRequest{header: http.Header{}, request: http.Request{
		Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Header: http.Header{},
	}}
}

// reset removes what the last request left.
func (f *fastRequest) reset() {
	if cap(f.body)+f.out.Cap() > maxKept {
		f.body, f.out = nil, bytes.Buffer{}
	}
	clear(f.header)
	clear(f.request.Header)
	clear(f.values)
	f.body, f.values, f.status, f.pause, f.request.Host = f.body[:0], f.values[:0], 0, defaultPause, ""
}

// isWholeGet reports whether text can be one GET request and nothing else.
func isWholeGet(text []byte) bool {
	const end = "\r\n\r\n"
	return bytes.HasPrefix(text, []byte("GET /")) && bytes.Index(text, []byte(end)) == len(text)-len(end)
}

// parse reads a request, and returns false where there is anything about it that net/http would not just read. Everything in the
// request is part of one copy of the text, which the connection overwrites.
func (f *fastRequest) parse(text []byte, client string) bool {
	f.reset()
	line, rest, _ := strings.Cut(string(text), "\r\n")
	target, ok := strings.CutSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1")
	if !ok || !isVisible(target, "") || strings.Contains(target, "#") || !f.parseTarget(target) {
		return false
	}
	f.request.URL, f.request.RequestURI, f.request.RemoteAddr = &f.address, target, client
	for rest != "\r\n" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || name == "" || !isAlphanumeric(name, "-_") || !isVisible(value, " \t") || !f.addField(textproto.CanonicalMIMEHeaderKey(name), value) {
			return false
		}
	}
	return f.request.Host != ""
}

func (f *fastRequest) parseTarget(target string) bool {
	path, query, asked := strings.Cut(target, "?")
	if isAlphanumeric(path, "-_.~/") && asked == (query != "") {
		f.address = url.URL{Path: path, RawQuery: query}
		return true
	}
	parsed, err := url.ParseRequestURI(target)
	if err == nil {
		f.address = *parsed
	}
	return err == nil
}

// addField returns false for a field that says something about the connection or about a body.
func (f *fastRequest) addField(name, value string) bool {
	switch name {
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Expect", "Upgrade", "Http2-Settings", "Keep-Alive", "Pragma":
		return false
	case "Host":
		first := f.request.Host == ""
		f.request.Host = value
		return first && value != "" && isAlphanumeric(value, "-._:[]")
	}
	if others := f.request.Header[name]; others != nil {
		f.request.Header[name] = append(others, value)
		return true
	}
	f.values = append(f.values, value)
	at := len(f.values)
	f.request.Header[name] = f.values[at-1 : at : at]
	return true
}

// Header implements http.ResponseWriter.
func (f *fastRequest) Header() http.Header { return f.header }

// WriteHeader implements http.ResponseWriter.
func (f *fastRequest) WriteHeader(status int) {
	if f.status == 0 {
		f.status = status
	}
}

// Write implements http.ResponseWriter.
func (f *fastRequest) Write(p []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	f.body = append(f.body, p...)
	return len(p), nil
}

// SetWriteDeadline is for an http.ResponseController.
func (f *fastRequest) SetWriteDeadline(deadline time.Time) error {
	f.pause = time.Until(deadline)
	return nil
}

// response returns the whole response as net/http would send it. It is valid until the fastRequest is used again.
func (f *fastRequest) response() []byte {
	if f.header["Content-Length"] == nil && f.status != http.StatusNotModified {
		f.header["Content-Length"] = []string{strconv.Itoa(len(f.body))}
	}
	if now := time.Now(); now.Unix() != f.second {
		f.date, f.second = now.UTC().AppendFormat(f.date[:0], http.TimeFormat), now.Unix()
	}
	f.out.Reset()
	f.write("HTTP/1.1 ", strconv.Itoa(f.status), " ", http.StatusText(f.status), "\r\n")
	f.writeHeader()
	f.out.WriteString("Date: ")
	f.out.Write(f.date)
	f.out.WriteString("\r\n\r\n")
	f.out.Write(f.body)
	return f.out.Bytes()
}

func (f *fastRequest) write(texts ...string) {
	for _, text := range texts {
		f.out.WriteString(text)
	}
}

// usualFields are the fields of nearly every response, in the order of net/http.
var usualFields = []string{
	"Access-Control-Allow-Headers", "Access-Control-Allow-Origin", "Age", "Cache-Status", "Content-Length", "Content-Type", "Etag",
	"Vary", "X-Content-Type-Options", "X-Frame-Options", "X-Request-Id", "X-Xss-Protection",
}

// writeHeader writes the fields in their order, without sorting where there are only the usual ones.
func (f *fastRequest) writeHeader() {
	before, written := f.out.Len(), 0
	for _, name := range usualFields {
		if values := f.header[name]; len(values) == 1 && strings.IndexByte(values[0], '\r') < 0 && strings.IndexByte(values[0], '\n') < 0 {
			f.write(name, ": ", values[0], "\r\n")
			written++
		}
	}
	if written < len(f.header) {
		f.out.Truncate(before)
		_ = f.header.Write(&f.out) // a buffer takes everything
	}
}

// isVisible reports whether text consists of visible ASCII characters and those of besides.
func isVisible(text, besides string) bool {
	for i := range len(text) {
		if (text[i] <= ' ' || text[i] >= 0x7f) && strings.IndexByte(besides, text[i]) < 0 {
			return false
		}
	}
	return true
}

// isAlphanumeric reports whether text consists of ASCII letters and digits and of the characters of besides.
func isAlphanumeric(text, besides string) bool {
	for i := range len(text) {
		c := text[i]
		if letter := c | 0x20; (letter < 'a' || letter > 'z') && (c < '0' || c > '9') && strings.IndexByte(besides, c) < 0 {
			return false
		}
	}
	return true
}
