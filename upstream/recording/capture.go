package recording

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// capture is an exchange that is under way, and the ResponseWriter that its handler gets.
type capture struct {
	http.ResponseWriter
	recorder *Recorder
	// seen is the exchange as it passed, without the bodies.
	seen Exchange

	// mu guards what follows: net/http may go on to read a request's body when the handler is done with it.
	mu sync.Mutex
	// in and out are copies of the bodies.
	in, out []byte
	// ended says that nothing is copied any more, refused that there was no memory for a body.
	ended, refused bool
}

// request gives the request that the handler gets.
func (c *capture) request(r *http.Request) *http.Request {
	if r.ContentLength == 0 {
		return r
	}
	c.seen.Unsendable = notRead
	read := *r
	read.Body = &capturedBody{r.Body, c}
	return &read
}

// capturedBody is a request's body that is copied while it is read.
type capturedBody struct {
	io.ReadCloser
	*capture
}

// Read implements io.Reader.
func (b *capturedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.add(&b.in, p[:n], errors.Is(err, io.EOF))
	return n, err
}

// WriteHeader implements http.ResponseWriter.
func (c *capture) WriteHeader(status int) {
	if c.seen.Response == nil && status >= http.StatusOK {
		c.seen.Response = &Response{Status: status, Headers: flat(c.Header())}
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *capture) Write(p []byte) (int, error) {
	if c.seen.Response == nil {
		c.WriteHeader(http.StatusOK)
	}
	n, err := c.ResponseWriter.Write(p)
	c.add(&c.out, p[:n], false)
	return n, err
}

// Unwrap implements what http.ResponseController expects.
func (c *capture) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// add copies a piece of a body. last says that it is the end of the request.
func (c *capture) add(to *[]byte, p []byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if last {
		c.seen.Unsendable = ""
	}
	*to = append(*to, p...)
	if c.recorder.used.Add(int64(len(p))) > c.recorder.options.Memory {
		c.refused = true
		c.free()
	}
}

// free ends the copying and gives back the memory of the bodies. The caller holds mu.
func (c *capture) free() {
	c.ended = true
	c.recorder.used.Add(-int64(len(c.in) + len(c.out)))
	c.in, c.out = nil, nil
}

// finish ends the copying and puts together what was seen, once the handler is done.
func (c *capture) finish() {
	if c.seen.Response == nil {
		c.WriteHeader(http.StatusOK)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	in, out := &c.seen.Request, c.seen.Response
	if c.seen.Unsendable == "" {
		in.Body = c.in
	}
	if in.Headers["content-length"] == "0" {
		in.Body = []byte{}
	}
	out.Body = c.out
	if out.Headers["date"] == "" { // net/http adds it later
		out.Headers["date"] = time.Now().UTC().Format(http.TimeFormat)
	}
}
