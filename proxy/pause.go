package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

const (
	// maxUnsent is about how much of a response may wait inside the system for a client to take it.
	maxUnsent = 64 << 10
	// maxPiece is how much of a response is written at a time.
	maxPiece = 32 << 10
	// minBodyRate is how many bytes in a second a client must send on average, beyond one pause. It is that of Debian's Apache.
	minBodyRate = 500
	// maxCredit is for how many pauses a client may be slower than that because it was faster before. Without a limit, what has come of a
	// large body could be kept in memory or on disk for days.
	maxCredit = 4
)

// Patient bounds the pauses of another handler's clients as a Server bounds those of its own.
func Patient(next http.Handler, pause ClientPause) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watched := newRecorder(w, pause.Taking)
		_ = watched.control.SetReadDeadline(time.Time{}) // that of the server would end a long call
		r = watched.watchBody(r, pause.Sending)
		defer watched.endBody()
		next.ServeHTTP(&watched, r)
	})
}

// watchBody bounds the pauses in the body of a request. It returns a copy of a request with a body, since net/http looks at the body
// of its own.
func (w *recorder) watchBody(r *http.Request, pause time.Duration) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	w.body = &pausedBody{ReadCloser: r.Body, control: &w.control, pause: pause, left: pause, waits: r.Header.Get("Expect") != ""}
	r = r.WithContext(r.Context())
	r.Body = w.body
	return r
}

// pausedBody bounds the time that a client takes to send a body: each pause, and the whole by minBodyRate.
type pausedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration
	// waits says that the client sends nothing before it is told to go on, which net/http does at the first read.
	waits bool
	begun atomic.Bool
	// ended says that nothing is left to read: the body is here, broke off or did not come in time.
	ended atomic.Bool
	// left is how long reading may still take. It grows with each byte that comes.
	left time.Duration
}

// Read implements io.Reader. Between reads there is no deadline: net/http would take it for the client hanging up.
func (b *pausedBody) Read(p []byte) (int, error) {
	start := time.Now()
	_ = b.control.SetReadDeadline(start.Add(min(b.pause, b.left)))
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	b.left = min(b.left+time.Duration(n)*time.Second/minBodyRate-time.Since(start), maxCredit*b.pause)
	if err != nil {
		b.ended.Store(true)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// drain reads on, up to a limit, after a response that did not need the whole body, as refusals do: many clients read a response
// only when they have sent everything, and would otherwise see a broken connection instead of it.
func (b *pausedBody) drain(limit int64) {
	if b.waits && !b.begun.Load() || b.ended.Load() || b.control.Flush() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b, limit) // the response is sent, and no error changes it
}
