package proxy

import (
	"bytes"
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// desk is where a request of the short way is read and its answer written. It is used again for other requests, so that one
// costs little to collect; nothing of it may be kept but strings.
type desk struct {
	request  *http.Request
	address  url.URL
	fields   http.Header
	values   []string
	record   Record
	header   http.Header
	body     []byte
	out      bytes.Buffer
	status   int
	declined bool
	// date is the text of its second, which most answers share with the one before.
	date   []byte
	second int64
}

// largestDesk is the size above which a desk's buffers are not kept.
const largestDesk = 64 << 10

// newDesks makes desks on demand. The context of their requests has ended: a Tracker that is asked with it answers at once or
// not at all.
func newDesks() *sync.Pool {
	ended, end := context.WithCancel(context.Background())
	end()
	return &sync.Pool{New: func() any {
		d := &desk{header: http.Header{}, fields: http.Header{}}
		d.request = (&http.Request{
			Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		}).WithContext(context.WithValue(ended, recordKey{}, &d.record))
		return d
	}}
}

// clean takes away what the last request left.
func (d *desk) clean() {
	if cap(d.body)+d.out.Cap() > largestDesk {
		d.body, d.out = nil, bytes.Buffer{}
	}
	clear(d.header)
	clear(d.fields)
	clear(d.values)
	d.body, d.values, d.record = d.body[:0], d.values[:0], Record{}
	d.status, d.declined = 0, false
}

// open reads a request; nil when there is anything about it that net/http would not just read. Everything in the request is
// part of one copy of the text, which the connection overwrites.
func (d *desk) open(text []byte, client string) *http.Request {
	d.clean()
	line, rest, _ := strings.Cut(string(text), "\r\n")
	target, ok := strings.CutSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1")
	if !ok || !visible(target, "") || strings.Contains(target, "#") {
		return nil
	}
	if !d.locate(target) {
		return nil
	}
	r := d.request
	r.URL, r.Header, r.RequestURI, r.RemoteAddr, r.Host = &d.address, d.fields, target, client, ""
	for rest != "\r\n" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !isFieldName(name) || !visible(value, " \t") || !d.field(textproto.CanonicalMIMEHeaderKey(name), value) {
			return nil
		}
	}
	if r.Host == "" {
		return nil
	}
	return r
}

// locate reads the target of a request.
func (d *desk) locate(target string) bool {
	path, query, asked := strings.Cut(target, "?")
	if alphanumeric(path, "-_.~/") && asked == (query != "") {
		d.address = url.URL{Path: path, RawQuery: query}
		return true
	}
	parsed, err := url.ParseRequestURI(target)
	if err == nil {
		d.address = *parsed
	}
	return err == nil
}

// field takes note of one field, unless it says something about the connection or about a body.
func (d *desk) field(name, value string) bool {
	switch name {
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Expect", "Upgrade", "Http2-Settings", "Keep-Alive", "Pragma":
		return false
	case "Host":
		first := d.request.Host == ""
		d.request.Host = value
		return first && isHost(value)
	}
	d.values = append(d.values, value)
	at := len(d.values)
	if already := d.fields[name]; already != nil {
		d.fields[name] = append(already, value)
	} else {
		d.fields[name] = d.values[at-1 : at : at]
	}
	return true
}

// Header implements http.ResponseWriter.
func (d *desk) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *desk) WriteHeader(status int) {
	if d.status == 0 {
		d.status = status
	}
}

// Write implements http.ResponseWriter.
func (d *desk) Write(p []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	d.body = append(d.body, p...)
	return len(p), nil
}

// sealed gives the whole answer, as net/http would send it.
func (d *desk) sealed() []byte {
	if d.header["Content-Length"] == nil && d.status != http.StatusNotModified {
		set(d.header, "Content-Length", strconv.Itoa(len(d.body)))
	}
	d.out.Reset()
	d.out.WriteString("HTTP/1.1 ")
	d.out.WriteString(strconv.Itoa(d.status))
	d.out.WriteByte(' ')
	d.out.WriteString(http.StatusText(d.status))
	d.out.WriteString("\r\n")
	d.writeHeader()
	d.out.WriteString("Date: ")
	d.out.Write(d.now())
	d.out.WriteString("\r\n\r\n")
	d.out.Write(d.body)
	return d.out.Bytes()
}

// now gives the time as a Date has it.
func (d *desk) now() []byte {
	if now := time.Now(); now.Unix() != d.second {
		d.date, d.second = now.UTC().AppendFormat(d.date[:0], http.TimeFormat), now.Unix()
	}
	return d.date
}

// usualFields are the fields of nearly every answer, in the order of net/http.
var usualFields = []string{
	"Access-Control-Allow-Headers", "Access-Control-Allow-Origin", "Age", "Cache-Status", "Content-Length", "Content-Type", "Etag",
	"X-Content-Type-Options", "X-Frame-Options", headerRequestID, "X-Xss-Protection",
}

// writeHeader writes the fields in their order, without the sorting where there are no others than the usual ones.
func (d *desk) writeHeader() {
	before, written := d.out.Len(), 0
	for _, name := range usualFields {
		values := d.header[name]
		if len(values) != 1 || !oneLine(values[0]) {
			continue
		}
		d.out.WriteString(name)
		d.out.WriteString(": ")
		d.out.WriteString(values[0])
		d.out.WriteString("\r\n")
		written++
	}
	if written < len(d.header) {
		d.out.Truncate(before)
		_ = d.header.Write(&d.out) // a buffer takes everything
	}
}

// oneLine tells whether a value cannot end its line.
func oneLine(value string) bool {
	return strings.IndexByte(value, '\r') < 0 && strings.IndexByte(value, '\n') < 0
}

// isWholeGet tells whether text is one GET request without anything behind it, as far as can be told from the outside.
func isWholeGet(text []byte) bool {
	const end = "\r\n\r\n"
	return bytes.HasPrefix(text, []byte("GET /")) && bytes.Index(text, []byte(end)) == len(text)-len(end)
}

// visible tells whether text consists of visible ASCII and of what is allowed besides.
func visible(text, besides string) bool {
	for i := range len(text) {
		if (text[i] <= ' ' || text[i] >= 0x7f) && strings.IndexByte(besides, text[i]) < 0 {
			return false
		}
	}
	return true
}

// isFieldName and isHost are narrower than HTTP: what they do not know, net/http may.
func isFieldName(name string) bool { return name != "" && alphanumeric(name, "-_") }

func isHost(host string) bool { return host != "" && alphanumeric(host, "-._:[]") }

func alphanumeric(text, besides string) bool {
	for i := range len(text) {
		c := text[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(besides, c) >= 0) {
			return false
		}
	}
	return true
}
