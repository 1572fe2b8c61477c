package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// recorder counts what is sent, and gives a client that takes nothing only so much time.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	// desk is set on the short way, where deadlines are not the handler's business.
	desk  *desk
	pause time.Duration
	// body is what the client sends, nil where that is nothing.
	body *pausedBody
	// final says that the client speaks HTTP/1.0, which has no interim answers: it would take the first for the answer.
	final bool
	// broken says that the answer breaks off, and that the client shall see it.
	broken bool
	status int
	bytes  int64
	// extended is when the client last got another pause.
	extended time.Time
}

func newRecorder(w http.ResponseWriter, pause time.Duration) *recorder {
	if d, short := w.(*desk); short {
		return &recorder{ResponseWriter: w, desk: d}
	}
	return &recorder{ResponseWriter: w, control: http.NewResponseController(w), pause: pause}
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.final && status < http.StatusOK {
		return
	}
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.leave()
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

const (
	// mostUnsent is about how much of an answer may wait inside the system for a client to take it.
	mostUnsent = 64 << 10
	// onePiece is how much of an answer is written at a time.
	onePiece = 32 << 10
)

// Write implements http.ResponseWriter. A long text goes in pieces, so that a client that takes them slowly gets the pause for
// each.
func (w *recorder) Write(p []byte) (done int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
		w.leave()
	}
	for {
		w.extend()
		piece := p[done:min(done+onePiece, len(p))]
		if w.desk != nil {
			piece = p
		}
		n, err := w.ResponseWriter.Write(piece)
		w.bytes += int64(n)
		if done += n; err != nil || done == len(p) {
			return done, err
		}
	}
}

// leave is for when nobody reads the body on. The answer waits for it, and its own pause begins thereafter.
func (w *recorder) leave() {
	if w.body == nil || w.body.ended.Load() {
		return
	}
	w.body.leave()
	w.extended = time.Now().Add(w.body.pause)
	_ = w.control.SetWriteDeadline(w.extended.Add(w.pause))
}

// deliver sends what is left of an answer before its record is closed, and lets others go first: where a crowd waits for one
// answer, nobody's log line comes before somebody's answer. Answers without a length are left to net/http, which may yet find it,
// and so is what has a body that may not have been read.
func (w *recorder) deliver() {
	if w.desk != nil || w.body != nil || w.Header().Get("Content-Length") == "" {
		return
	}
	if w.control.Flush() == nil {
		runtime.Gosched()
	}
}

// extend gives the client another pause, or leaves it at the last one if that is hardly over. A writer without deadlines, as in a test, has no slow clients.
func (w *recorder) extend() {
	if w.desk != nil {
		return
	}
	// Moving a deadline costs more than to look at the clock.
	if now := time.Now(); now.Sub(w.extended) > w.pause/64 {
		w.extended = now
		_ = w.control.SetWriteDeadline(now.Add(w.pause))
	}
}

// declines leaves a request of the short way to net/http. It must not have been answered.
func (w *recorder) declines() bool {
	if w.desk == nil || w.status != 0 {
		return false
	}
	w.desk.declined = true
	return true
}

// Unwrap lets http.ResponseController through.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pausedBody gives a client that sends nothing only so much time.
type pausedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration
	// waits says that the client sends nothing before it is told to go on, which it is when somebody begins to read.
	waits bool
	begun atomic.Bool
	ended atomic.Bool
	// failed says that it broke off, or did not come in time.
	failed atomic.Bool
}

// Read implements io.Reader. Between reads no deadline stands: net/http would take it for the client's hanging up.
func (b *pausedBody) Read(p []byte) (int, error) {
	b.extend()
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
	case err != nil:
		b.failed.Store(true)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// leave is for when nobody reads on: before an answer, and at the end. What little is left of the body, net/http reads and
// throws away, and without a deadline it would wait for that without end.
func (b *pausedBody) leave() {
	if !b.ended.Load() {
		b.extend()
	}
}

// Close implements io.Closer. It throws away what is left, as net/http does.
func (b *pausedBody) Close() error {
	b.leave()
	return b.ReadCloser.Close()
}

// hearOut reads on, up to a limit, after an answer that did not need the whole body, as refusals do: many clients look at an
// answer only when they have sent everything, and would otherwise see a broken connection instead of it.
func (b *pausedBody) hearOut(limit int64) {
	if b.waits && !b.begun.Load() || b.ended.Load() || b.failed.Load() || b.control.Flush() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b, limit) // the answer is out: nobody is left to tell
}

func (b *pausedBody) extend() { _ = b.control.SetReadDeadline(time.Now().Add(b.pause)) }
