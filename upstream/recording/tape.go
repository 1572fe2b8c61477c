package recording

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// TapeOptions say where exchanges go and what they may cost.
type TapeOptions struct {
	// To gets one line for each exchange.
	To io.Writer
	// MaxData is the longest base64 payload that is kept, in characters; default 64 KiB.
	MaxData int
	// Body is the longest body that is looked at, in bytes; default 32 MiB.
	Body int64
	// Memory bounds all that waits to be written, in bytes; default 128 MiB.
	Memory int64
	// Queue is how many exchanges may wait; default 1024.
	Queue int
}

func (o TapeOptions) withDefaults() TapeOptions {
	o.MaxData = cmp.Or(o.MaxData, 64<<10)
	o.Body = cmp.Or(o.Body, 32<<20)
	o.Memory = cmp.Or(o.Memory, 128<<20)
	o.Queue = cmp.Or(o.Queue, 1024)
	return o
}

// Tape writes down what passes through a handler, redacted. It never makes a client wait: what does not fit is dropped and
// counted.
type Tape struct {
	options TapeOptions
	queue   chan *take
	used    atomic.Int64
	ended   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	counts Counts
	failed error
}

// Counts say what became of exchanges.
type Counts struct {
	// Written are in the file, Unsendable of them without what it takes to make them again.
	Written, Unsendable int
	// Dropped are not, by reason: aborted, queue, memory, write.
	Dropped map[string]int
}

// NewTape begins to write. Close ends it.
func NewTape(o TapeOptions) *Tape {
	o = o.withDefaults()
	t := &Tape{options: o, queue: make(chan *take, o.Queue), counts: Counts{Dropped: map[string]int{}}}
	t.ended.Go(t.write)
	return t
}

// Over puts the tape before a handler.
func (t *Tape) Over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := t.begin(w, r)
		defer func() { // also when the handler breaks the answer off, which it does with a panic
			if !t.hand(one) {
				one.release()
			}
		}()
		next.ServeHTTP(one, one.request(r))
		one.finish()
	})
}

// hand gives an exchange to the writer, if there is room for it.
func (t *Tape) hand(one *take) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !one.finished():
		t.counts.Dropped["aborted"]++
		return false
	case one.out.refused || one.in.refused:
		t.counts.Dropped["memory"]++
		return false
	case t.closed:
		t.counts.Dropped["queue"]++
		return false
	}
	select {
	case t.queue <- one:
		return true
	default:
		t.counts.Dropped["queue"]++
		return false
	}
}

// write takes exchanges from the queue until it is closed.
func (t *Tape) write() {
	buffered := bufio.NewWriterSize(t.options.To, 64<<10)
	to, redactor := NewWriter(buffered), NewRedactor(t.options.MaxData)
	for one := range t.queue {
		one.seen.Name = fmt.Sprintf("%06d", t.written()+1)
		e := redactor.Redact(one.seen)
		one.release()
		err := to.Write(e)
		if err == nil && len(t.queue) == 0 {
			err = buffered.Flush()
		}
		t.done(e, err)
	}
	t.done(Exchange{}, buffered.Flush())
}

func (t *Tape) written() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts.Written
}

// done counts an exchange; the empty one is none.
func (t *Tape) done(e Exchange, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.counts.Dropped["write"]++
		if t.failed == nil {
			t.failed = fmt.Errorf("writing recordings: %w", err)
		}
	case e.Name != "":
		t.counts.Written++
		if e.Unsendable != "" {
			t.counts.Unsendable++
		}
	}
}

// Close waits until everything is written and tells what became of it. The error is the first of To.
func (t *Tape) Close() (Counts, error) {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.queue)
	}
	t.mu.Unlock()
	t.ended.Wait()
	return t.Counts()
}

// Counts tells what became of exchanges so far, and the first error of To.
func (t *Tape) Counts() (Counts, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.counts
	counts.Dropped = maps.Clone(counts.Dropped)
	return counts, t.failed
}

// elsewhere is the address of a connection that is not known. By the real one Portico finds the connection itself and
// answers reads without net/http, which nobody would see here.
type elsewhere struct{ net.Addr }
