package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

var errTooLong = errors.New("the response is too long")

// Send makes a request over a connection of its own, with method, path, header names and body exactly as recorded: net/http
// would correct lower-case methods, stray percent signs and the like. A path of the base URL goes before the recorded one.
// A response of more than maxSize bytes is an error.
func Send(ctx context.Context, baseURL string, r Request, maxSize int64) (Response, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return Response{}, err
	}
	port := cmp.Or(base.Port(), base.Scheme) // the scheme names the port
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(base.Hostname(), port))
	if err != nil {
		return Response{}, err
	}
	if base.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: base.Hostname()})
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// A server may respond and close before it has read all; the response counts, so the error of writing does not.
	written := make(chan struct{})
	go func() {
		_, _ = conn.Write(r.bytes(base))
		close(written)
	}()
	response, err := receive(conn, r.Method, maxSize)
	conn.Close()
	<-written
	return response, err
}

// bytes is the request as it goes over the wire.
func (r Request) bytes(base *url.URL) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", r.Method, strings.TrimSuffix(base.EscapedPath(), "/"), r.Path, base.Host)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		fmt.Fprintf(&b, "%s: %s\r\n", name, r.Headers[name])
	}
	if _, chunked := r.Headers["Transfer-Encoding"]; r.Body != nil && !chunked {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("Connection: close\r\n\r\n")
	b.Write(r.Body)
	return b.Bytes()
}

// receive reads one response, after any informational ones.
func receive(conn net.Conn, method string, maxSize int64) (Response, error) {
	limited := &io.LimitedReader{R: conn, N: maxSize}
	in := bufio.NewReader(limited)
	for {
		got, err := http.ReadResponse(in, &http.Request{Method: method})
		if err == nil && got.StatusCode < http.StatusOK {
			continue
		}
		var body []byte
		if err == nil {
			body, err = io.ReadAll(got.Body)
			conn.Close() // first: else closing the body reads on to its end
			got.Body.Close()
		}
		if limited.N <= 0 {
			err = errTooLong
		}
		if err != nil {
			return Response{}, err
		}
		if len(got.TransferEncoding) > 0 {
			got.Header["Transfer-Encoding"] = got.TransferEncoding
		}
		return Response{Status: got.StatusCode, Headers: flat(got.Header), Body: body}, nil
	}
}

// flat gives headers under names in lower case, those that came several times with commas between.
func flat(header http.Header) map[string]string {
	headers := map[string]string{}
	for name, values := range header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return headers
}

// decoded undoes the content encoding of a response: some servers compress where nothing asks them to. What comes out has a maximum
// size in bytes.
func decoded(r Response, maxSize int64) (Response, error) {
	var from io.Reader
	var err error
	switch strings.ToLower(r.Headers["content-encoding"]) {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		from, err = gzip.NewReader(bytes.NewReader(r.Body))
	case "deflate":
		from, err = zlib.NewReader(bytes.NewReader(r.Body))
	default:
		err = errors.ErrUnsupported
	}
	if err == nil {
		r.Body, err = io.ReadAll(io.LimitReader(from, maxSize))
	}
	if err == nil && int64(len(r.Body)) == maxSize {
		err = errTooLong
	}
	return r, err
}
