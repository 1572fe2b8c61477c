package recording

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// take is an exchange that is going by.
type take struct {
	http.ResponseWriter
	tape *Tape
	seen Seen
	// length is that of the request's body as announced, -1 when it was not.
	length int64

	// mu guards what follows: net/http may go on to read a request's body when the handler is done with it.
	mu    sync.Mutex
	in    copied
	out   copied
	whole bool
	// ended tells that nothing is copied any more.
	ended bool
}

// begin looks at the beginning of a request.
func (t *Tape) begin(w http.ResponseWriter, r *http.Request) *take {
	one := &take{ResponseWriter: w, tape: t, length: r.ContentLength}
	one.seen = Seen{Method: r.Method, Target: r.RequestURI, Header: r.Header.Clone()}
	one.in.tape, one.out.tape = t, t
	return one
}

// request gives the request that the handler gets.
func (k *take) request(r *http.Request) *http.Request {
	ctx := r.Context()
	if at, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr); ok {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, elsewhere{at})
	}
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &overheard{ReadCloser: r.Body, take: k}
	} else {
		k.whole = true
	}
	return r
}

// overheard is a request's body that is copied while it is read.
type overheard struct {
	io.ReadCloser
	take *take
}

// Read implements io.Reader.
func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.take.read(p[:n], errors.Is(err, io.EOF))
	return n, err
}

// read copies a piece of the request's body, which may be the last one.
func (k *take) read(p []byte, last bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.in.add(p)
		k.whole = k.whole || last
	}
}

// wrote copies a piece of the answer's body.
func (k *take) wrote(p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.out.add(p)
	}
}

// WriteHeader implements http.ResponseWriter.
func (k *take) WriteHeader(status int) {
	if k.seen.Status == 0 && status >= http.StatusOK {
		k.seen.Status, k.seen.Answer = status, k.Header().Clone()
	}
	k.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (k *take) Write(p []byte) (int, error) {
	if k.seen.Status == 0 {
		k.WriteHeader(http.StatusOK)
	}
	n, err := k.ResponseWriter.Write(p)
	k.wrote(p[:n])
	return n, err
}

// Flush implements http.Flusher.
func (k *take) Flush() { _ = http.NewResponseController(k.ResponseWriter).Flush() }

// Unwrap lets http.ResponseController through.
func (k *take) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// finish ends the copying and puts together what was seen.
func (k *take) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.seen.Body, k.seen.BodyCut = k.in.text, k.in.cut()
	if k.seen.Body == nil && slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, k.seen.Method) {
		k.seen.Body = []byte{}
	}
	if missed := k.length > k.in.size || k.length < 0; !k.whole && missed && k.seen.BodyCut == 0 {
		k.seen.BodyCut = max(k.length, k.in.size+1)
	}
	k.seen.Content, k.seen.ContentCut = k.out.text, k.out.cut()
	if k.seen.Status == 0 {
		k.seen.Status, k.seen.Answer = http.StatusOK, k.Header().Clone()
	}
	if k.seen.Answer.Get("Date") == "" { // net/http adds it later
		k.seen.Answer.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
}

// finished tells whether the handler came to its end.
func (k *take) finished() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

// release gives the memory back, and takes no more of it.
func (k *take) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.in.release()
	k.out.release()
}

// copied is a copy of a body as far as there is room for it.
type copied struct {
	tape    *Tape
	text    []byte
	size    int64
	refused bool
}

// add copies what goes by.
func (c *copied) add(p []byte) {
	c.size += int64(len(p))
	switch {
	case c.refused || len(p) == 0:
		return
	case c.size > c.tape.options.Body:
		c.release()
		return
	}
	if need := len(c.text) + len(p); need > cap(c.text) && !c.grow(max(need, 2*cap(c.text), 512)) {
		c.release()
		c.refused = true
		return
	}
	c.text = append(c.text, p...)
}

// grow makes room for so many bytes, if the tape has as many to give.
func (c *copied) grow(room int) bool {
	if c.tape.used.Add(int64(room)) > c.tape.options.Memory {
		c.tape.used.Add(-int64(room))
		return false
	}
	larger := make([]byte, len(c.text), room)
	copy(larger, c.text)
	c.tape.used.Add(-int64(cap(c.text)))
	c.text = larger
	return true
}

// cut is the size of a body that was too long to be kept, else 0.
func (c *copied) cut() int64 {
	if c.size > c.tape.options.Body {
		return c.size
	}
	return 0
}

func (c *copied) release() {
	c.tape.used.Add(-int64(cap(c.text)))
	c.text = nil
}
