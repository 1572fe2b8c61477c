package recording

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
)

// RecorderOptions say where exchanges go and what they may cost.
type RecorderOptions struct {
	// To gets one line for each exchange.
	To io.Writer
	// MaxData is the longest base64 payload that is kept, in characters.
	MaxData int
	// Memory is the maximum size of all bodies that wait to be written, in bytes; default 128 MiB.
	Memory int64
	// Failed, if not nil, gets the first error of To, after which nothing more is written. It may call the Recorder, except for Close.
	Failed func(error)
}

// maxQueue is how many exchanges may wait to be written.
const maxQueue = 1024

// Recorder writes down what passes through a handler, redacted. It never makes a client wait: what does not fit is dropped and
// counted. It is safe for concurrent use.
type Recorder struct {
	options RecorderOptions
	queue   chan *capture
	// used is the size of the bodies that wait to be written, in bytes.
	used  atomic.Int64
	ended sync.WaitGroup

	mu     sync.Mutex
	closed bool
	counts Counts
	failed error
}

// Why exchanges are dropped.
const (
	DropAborted = "their responses broke off"
	DropQueue   = "too many were waiting to be written"
	DropMemory  = "those that were waiting took too much memory"
	DropWrite   = "the file could not be written"
)

// Counts are the numbers of exchanges by what became of them.
type Counts struct {
	// Written are in the file, Unsendable of them without what it takes to send them again.
	Written, Unsendable int
	// Dropped are not, by reason.
	Dropped map[string]int
}

// NewRecorder starts a recorder. It needs a Close.
func NewRecorder(o RecorderOptions) *Recorder {
	o.Memory = cmp.Or(o.Memory, 128<<20)
	r := &Recorder{options: o, queue: make(chan *capture, maxQueue), counts: Counts{Dropped: map[string]int{}}}
	r.ended.Go(r.write)
	return r
}

// Handler records what passes through a handler.
func (r *Recorder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		c := &capture{ResponseWriter: w, recorder: r, seen: Exchange{
			Request: Request{Method: request.Method, Path: request.RequestURI, Headers: flat(request.Header)},
		}}
		defer r.enqueue(c) // also when the handler breaks the response off, which it does with a panic
		next.ServeHTTP(c, c.request(request))
		c.finish()
	})
}

// enqueue gives an exchange to the writer, unless too many wait for it.
func (r *Recorder) enqueue(c *capture) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	reason := DropQueue
	switch {
	case c.refused:
		reason = DropMemory
	case !c.ended:
		reason = DropAborted
	case !r.closed:
		select {
		case r.queue <- c:
			return
		default:
		}
	}
	r.counts.Dropped[reason]++
	c.free()
}

// write takes exchanges from the queue until it is closed.
func (r *Recorder) write() {
	buffered := bufio.NewWriterSize(r.options.To, 64<<10)
	redactor := NewRedactor(r.options.MaxData)
	for c := range r.queue {
		c.seen.Name = fmt.Sprintf("%06d", r.counts.Written+1) // nothing else changes it
		// Of a compressed body only a digest would be kept.
		if plain, err := decoded(*c.seen.Response, r.options.Memory); err == nil {
			delete(plain.Headers, "content-encoding")
			c.seen.Response = &plain
		}
		e := redactor.Redact(c.seen)
		c.mu.Lock()
		c.free()
		c.mu.Unlock()
		err := Write(buffered, e)
		if err == nil && len(r.queue) == 0 {
			err = buffered.Flush()
		}
		r.mu.Lock()
		isFirst := err != nil && r.failed == nil
		switch {
		case err != nil:
			r.counts.Dropped[DropWrite]++
			r.failed = cmp.Or(r.failed, err)
		case e.Unsendable != "":
			r.counts.Unsendable++
			fallthrough
		default:
			r.counts.Written++
		}
		r.mu.Unlock()
		if isFirst && r.options.Failed != nil {
			r.options.Failed(err)
		}
	}
}

// Close waits until everything is written and gives the counts. The error is the first of To.
func (r *Recorder) Close() (Counts, error) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mu.Unlock()
	r.ended.Wait()
	return r.Counts()
}

// Counts gives what became of exchanges so far, and the first error of To.
func (r *Recorder) Counts() (Counts, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	counts.Dropped = maps.Clone(counts.Dropped)
	return counts, r.failed
}
