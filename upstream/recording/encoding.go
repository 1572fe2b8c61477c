package recording

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"portico/mapping"
)

var errUnknownCoding = errors.New("the answer has a content encoding that nobody asked for and that cannot be undone")

// plainly asks for an answer that is not compressed: compressed JSON cannot be compared member by member, and its bytes are
// others each time, since trackers order members at random.
func plainly(r Request) Request {
	headers := map[string]string{"Accept-Encoding": "identity"}
	for name, value := range r.Headers {
		if http.CanonicalHeaderKey(name) != "Accept-Encoding" {
			headers[name] = value
		}
	}
	r.Headers = headers
	return r
}

// decoded undoes the content encoding of an answer: some servers compress what nobody asked them to. At most so many bytes of
// what comes out are kept.
func decoded(a Response, operation mapping.Operation, most int64) (Response, error) {
	coding := strings.ToLower(strings.TrimSpace(a.Headers["content-encoding"]))
	if coding == "" || coding == "identity" || len(a.Body) == 0 && a.Size == 0 {
		return a, nil
	}
	if a.Size > 0 { // it is not here in full
		return Response{}, errUnknownCoding
	}
	from, err := decoder(coding, a.Body)
	if err != nil {
		return Response{}, err
	}
	if err := a.keep(from, operation, most); err != nil {
		return Response{}, fmt.Errorf("undo the content encoding: %w", err)
	}
	a.Headers = maps.Clone(a.Headers)
	delete(a.Headers, "content-encoding")
	return a, nil
}

// decoder reads what a body is without its encoding. What is called deflate comes with the frame of zlib, or without it from
// servers that took the word for what it says.
func decoder(coding string, body []byte) (io.Reader, error) {
	in := bufio.NewReader(bytes.NewReader(body))
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(in)
	case "deflate":
		if start, _ := in.Peek(2); len(start) == 2 && start[0]&0x0f == 8 && (int(start[0])<<8|int(start[1]))%31 == 0 {
			return zlib.NewReader(in)
		}
		return flate.NewReader(in), nil
	}
	return nil, errUnknownCoding
}
