package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ending is how a response body ended.
type ending struct {
	err    error         // nil after a whole body, and after one that its reader closed early by choice
	whole  bool          // the end was seen
	bytes  int64         // how much was read
	waited time.Duration // the part of lasted spent inside Read: waiting for the tracker, not for the client
	lasted time.Duration // from the headers to the end of the data, seen or given up
}

// body passes a response body on and reports exactly once how it ended: at its end, at an error, when it is
// closed, or when its context ends, whichever is first. So a layer gets its slot or its verdict back even
// from a caller that forgets to close. With atClose the end of the data alone is not the end: the caller
// may still Fail it until it closes it.
type body struct {
	ctx     context.Context
	inner   io.ReadCloser
	onDone  func(ending)
	atClose bool
	begun   time.Time
	bytes   atomic.Int64
	waited  stopwatch
	whole   atomic.Bool
	lasted  atomic.Int64 // set with whole
	done    sync.Once
	stop    func() bool // of context.AfterFunc
}

// watch puts a body around resp.Body. onDone may run in another goroutine, when ctx ends.
func watch(ctx context.Context, resp *http.Response, atClose bool, onDone func(ending)) {
	b := &body{ctx: ctx, inner: resp.Body, onDone: onDone, atClose: atClose, begun: time.Now()}
	if resp.Body == http.NoBody {
		b.whole.Store(true)
		if !atClose { // nothing will come, and many callers do not close what is empty
			b.finish(nil)
			return
		}
	}
	resp.Body = b
	b.stop = context.AfterFunc(ctx, b.ended)
}

// Read reports the end of the data and every error but the end.
func (b *body) Read(p []byte) (int, error) {
	b.waited.start()
	n, err := b.inner.Read(p)
	b.waited.stop()
	b.bytes.Add(int64(n))
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		b.lasted.CompareAndSwap(0, int64(time.Since(b.begun)))
		b.whole.Store(true)
		if !b.atClose {
			b.settle(nil)
		}
	default:
		b.settle(err)
	}
	return n, err
}

// Close before the end is the reader's choice and no error, unless the context has ended and left no choice.
func (b *body) Close() error {
	err := b.inner.Close()
	if b.ctx.Err() != nil {
		b.ended()
	}
	b.settle(nil)
	return err
}

// Fail passes the word inwards, then ends this layer with it.
func (b *body) Fail(err error) {
	Fail(b.inner, err)
	b.settle(&Error{Reason: BadAnswer, Op: Operation(b.ctx), Err: err})
}

// ended is the end by the context: too late to matter when all data were read.
func (b *body) ended() {
	if b.whole.Load() {
		b.finish(nil)
		return
	}
	b.finish(contextError(b.ctx))
}

func (b *body) settle(err error) {
	b.finish(err)
	if b.stop != nil {
		b.stop()
	}
}

// finish returns when the ending has been reported, by whomever: a reader that is told of a failure may act on it at once,
// and the end of the context is noticed in another goroutine than its Read.
func (b *body) finish(err error) {
	b.done.Do(func() { b.report(err) })
}

func (b *body) report(err error) {
	lasted := time.Duration(b.lasted.Load())
	if lasted == 0 {
		lasted = time.Since(b.begun)
	}
	b.onDone(ending{
		err: err, whole: b.whole.Load(), bytes: b.bytes.Load(),
		waited: b.waited.elapsed(), lasted: lasted,
	})
}
