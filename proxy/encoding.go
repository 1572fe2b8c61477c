package proxy

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxCompressors is how many responses are compressed at a time. Each takes about a megabyte while it is sent, however large the
// response is; further clients get theirs uncompressed.
const maxCompressors = 16

// compressors lends gzip writers, at most maxCompressors at a time.
type compressors chan *gzip.Writer

// get returns a writer that compresses to w, or nil when all are in use.
func (c compressors) get(w io.Writer) *gzip.Writer {
	select {
	case compressor := <-c:
		compressor.Reset(w)
		return compressor
	default:
		return nil
	}
}

func (c compressors) put(compressor *gzip.Writer) {
	compressor.Reset(io.Discard)
	c <- compressor
}

// copyBuffers keeps some of the buffers in which responses pass.
type copyBuffers chan []byte

// Get implements httputil.BufferPool.
func (c copyBuffers) Get() []byte {
	select {
	case buffer := <-c:
		return buffer
	default:
		return make([]byte, maxPiece)
	}
}

// Put implements httputil.BufferPool.
func (c copyBuffers) Put(buffer []byte) {
	select {
	case c <- buffer:
	default:
	}
}

// acceptsGzip reports whether a client names gzip without refusing it by a weight of 0 (RFC 9110, section 12.5.3).
func acceptsGzip(header http.Header) bool {
	for _, item := range items(header["Accept-Encoding"]) {
		coding, weight, weighted := strings.Cut(strings.ToLower(strings.ReplaceAll(item, " ", "")), ";q=")
		if coding == "gzip" || coding == "x-gzip" {
			return !weighted || strings.Trim(weight, "0.") != ""
		}
	}
	return false
}

// compressor prepares the header of a response that may be compressed, and returns what compresses it, or nil.
func (rc *requestContext) compressor(size int64) *gzip.Writer {
	if size >= 0 && size < minCompressed || rc.form.page {
		return nil
	}
	rc.set("Vary", "Accept-Encoding")
	if !acceptsGzip(rc.r.Header) {
		return nil
	}
	compressor := rc.server.gzips.get(rc)
	if compressor != nil {
		rc.set("Content-Encoding", "gzip")
		rc.weakenTag()
	}
	return compressor
}

// weakenTag makes the tag weak: the compressed form of a response has other bytes and the same meaning (RFC 9110, section 8.8.1).
func (rc *requestContext) weakenTag() {
	if tag := rc.Header().Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		rc.set("Etag", `W/"`+strings.Trim(tag, `"`)+`"`)
	}
}

func indented(text jsontext.Value) jsontext.Value {
	pretty := text.Clone()
	if err := pretty.Indent(jsontext.WithIndent("   ")); err != nil {
		return text
	}
	return pretty
}

const (
	pageHead = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"UTF-8\"><title>Response of the REST interface</title></head>\n<body><pre>"
	pageFoot = "</pre></body></html>\n"
)

// htmlEscaper writes plain text as text inside HTML.
type htmlEscaper struct{ io.Writer }

// Write implements io.Writer. The count is of the plain text. A long text goes in pieces, of which the replacer makes copies.
func (e htmlEscaper) Write(p []byte) (int, error) {
	for piece := range slices.Chunk(p, maxPiece) {
		if _, err := htmlEntities.WriteString(e.Writer, string(piece)); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

var htmlEntities = strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "'", "&#39;", `"`, "&quot;")
