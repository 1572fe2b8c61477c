package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// helpers are the servers that this program is when its first argument is their name. The others are: the address to listen at,
// the address of the server behind it, and for the tracker the path prefix that it delays and for how long.
var helpers = map[string]func(arguments []string) error{"canned-tracker": serveCanned, "plain-proxy": servePlainProxy}

// helper runs a helper if the arguments of the process name one.
func helper(arguments []string) bool {
	if len(arguments) < 2 || helpers[arguments[1]] == nil {
		return false
	}
	if err := helpers[arguments[1]](arguments[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return true
}

// startHelper starts this program again as a helper.
func (b *bench) startHelper(ctx context.Context, name, command string, arguments ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return b.listening(ctx, name, func(address string) (*process, error) {
		return start(ctx, b.dir, self, address, append([]string{command, address}, arguments...)...)
	})
}

// servePlainProxy is Go's own reverse proxy with connections that are kept.
func servePlainProxy(arguments []string) error {
	target, err := url.Parse(arguments[1])
	if err != nil {
		return err
	}
	server := http.Server{
		Addr: arguments[0], ReadHeaderTimeout: time.Minute,
		Handler: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: &http.Transport{MaxIdleConns: 4 * waiters, MaxIdleConnsPerHost: 4 * waiters, DisableCompression: true},
			ErrorLog:  log.New(io.Discard, "", 0),
		},
	}
	return server.ListenAndServe()
}

// canned sends the responses of the reference tracker, byte for byte, without its work: the first request with a method, path, query
// and API key is forwarded, and its response is the response to all others. Bodies are read and ignored.
type canned struct {
	target string
	// prefix is that of the paths whose responses are delayed.
	prefix string
	delay  time.Duration
	// delayed counts the requests for such paths.
	delayed atomic.Int64
	mu      sync.Mutex
	known   map[string][]byte
}

func serveCanned(arguments []string) error {
	delay, err := time.ParseDuration(arguments[3])
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", arguments[0])
	if err != nil {
		return err
	}
	return (&canned{target: arguments[1], prefix: arguments[2], delay: delay}).serve(listener)
}

// serve handles connections until the listener is closed.
func (c *canned) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_ = c.converse(conn) // a client that goes away ends it
		}()
	}
}

// converse handles the requests of one connection.
func (c *canned) converse(conn net.Conn) error {
	reader := bufio.NewReaderSize(conn, 64<<10)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return err
		}
		response, err := c.response(request)
		if err != nil {
			response = []byte("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return err
		}
		if strings.HasPrefix(request.URL.Path, c.prefix) {
			c.delayed.Add(1)
			time.Sleep(c.delay)
		}
		if _, err := conn.Write(response); err != nil || request.Close {
			return err
		}
	}
}

// response returns the known response to a request, or that of the tracker.
func (c *canned) response(r *http.Request) ([]byte, error) {
	name := r.Method + " " + r.RequestURI + " " + r.Header.Get("X-Bugzilla-Api-Key")
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[name]; known != nil {
		return known, nil
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimSuffix(c.target, "/")+r.RequestURI, io.NopCloser(r.Body))
	if err != nil {
		return nil, err
	}
	request.Header, request.ContentLength = r.Header.Clone(), r.ContentLength
	request.Header.Del("Connection")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	dump, err := httputil.DumpResponse(response, true)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusInternalServerError {
		if c.known == nil {
			c.known = map[string][]byte{}
		}
		c.known[name] = bytes.Clone(dump)
	}
	return dump, nil
}

// cannedTracker starts the reference tracker behind a helper with its responses, which delays those below a path prefix. stop ends both.
func (b *bench) cannedTracker(ctx context.Context, prefix string, delay time.Duration) (front *server, stop func(), err error) {
	tracker, err := b.tracker(ctx, "--max-attachment", "100000")
	if err != nil {
		return nil, nil, err
	}
	front, err = b.startHelper(ctx, "tracker", "canned-tracker", tracker.url("/"), prefix, delay.String())
	if err != nil {
		tracker.stop()
		return nil, nil, err
	}
	return front, func() { front.stop(); tracker.stop() }, nil
}

// cannedHere is a cannedTracker inside this process, whose counter can be read.
func (b *bench) cannedHere(ctx context.Context, prefix string, delay time.Duration) (front *canned, base string, stop func(), err error) {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		tracker.stop()
		return nil, "", nil, err
	}
	front = &canned{target: tracker.url("/"), prefix: prefix, delay: delay}
	go func() { _ = front.serve(listener) }() // stop closes the listener
	return front, "http://" + listener.Addr().String() + "/", func() { _ = listener.Close(); tracker.stop() }, nil
}
