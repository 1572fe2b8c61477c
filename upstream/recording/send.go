package recording

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Send makes a request over a connection of its own, with method, path, header names and body exactly as recorded: net/http
// would correct lower-case methods, stray percent signs and the like. A path of the base URL goes before the recorded one.
// Of a body of more than 64 MiB only the size is given.
func Send(ctx context.Context, baseURL string, r Request) (Response, error) {
	return send(ctx, baseURL, r, defaultBody)
}

// send is Send that keeps bodies up to most bytes.
func send(ctx context.Context, baseURL string, r Request, most int64) (Response, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return Response{}, fmt.Errorf("sending %s: %w", r.Path, err)
	}
	conn, err := dial(ctx, base)
	if err != nil {
		return Response{}, fmt.Errorf("sending %s: %w", r.Path, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	// A server may answer and close before it has read all; the answer counts, so the error of writing does not.
	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(r.bytes(base))
		written <- err
	}()
	answer, err := receive(conn, r, most)
	conn.Close()
	if sendErr := <-written; err != nil && sendErr != nil {
		err = fmt.Errorf("%w (and writing: %w)", err, sendErr)
	}
	if err != nil {
		return Response{}, fmt.Errorf("receiving the answer to %s %s: %w", r.Method, r.Path, err)
	}
	return answer, nil
}

func dial(ctx context.Context, base *url.URL) (net.Conn, error) {
	port := base.Port()
	if base.Scheme == "https" {
		if port == "" {
			port = "443"
		}
		return (&tls.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(base.Hostname(), port))
	}
	if port == "" {
		port = "80"
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(base.Hostname(), port))
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
