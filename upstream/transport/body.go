package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	maxSilence = 30 * time.Second // of a response while it is read, whatever HeaderTimeout is
	readAhead  = 64 << 10         // bytes of a body that are read before its caller gets it; a small one that is cut short is asked for again
	streamed   = 4 << 10          // the same of a streamed body: what has come with its header, most of the time
)

// accept takes the header of a response.
func (a *attempt) accept(resp *http.Response) {
	a.waiting.Store(false)
	a.body, resp.Body = resp.Body, a
	a.mu.Lock()
	a.resp, a.took = resp, time.Since(a.began)
	a.mu.Unlock()
	if a.body == http.NoBody { // many callers do not close or read what is empty
		a.dataEnded()
	}
	if a.breaker != nil {
		a.breaker.headerReceived(&a.admission, resp.StatusCode)
		if resp.StatusCode > http.StatusInternalServerError {
			a.call.stack.Limiter.failed()
		}
	}
	if a.ended() != nil {
		a.expired() // once more, since the first time there was no response to end
	}
}

// prefetch reads the begin of the body ahead. A small body is whole after that, so a cut one can still be asked for again.
func (a *attempt) prefetch() {
	if !a.call.Stream {
		a.ahead, _ = Head(a.resp, readAhead) // Read returns the error again
		if a.whole.Load() && a.resp.ContentLength < 0 {
			a.resp.ContentLength = int64(len(a.ahead)) // so that its reader takes memory once
		}
		return
	}
	head := make([]byte, streamed)
	n, _ := io.ReadAtLeast(a, head, 1)
	a.ahead = head[:n]
}

// Head reads up to so many bytes of the body of a response, in memory of their size where that is known. It does not copy what was read ahead if
// that is all.
func Head(response *http.Response, limit int64) ([]byte, error) {
	if a, ok := response.Body.(*attempt); ok && a.whole.Load() && int64(len(a.ahead)) < limit {
		head := a.ahead
		a.ahead = nil
		return head, nil
	}
	head := bytes.NewBuffer(make([]byte, 0, min(max(0, response.ContentLength), limit)+bytes.MinRead))
	_, err := head.ReadFrom(io.LimitReader(response.Body, limit))
	return head.Bytes(), err
}

// Read returns what was read ahead and then the rest.
func (a *attempt) Read(p []byte) (int, error) {
	switch {
	case len(a.ahead) > 0:
		n := copy(p, a.ahead)
		a.ahead = a.ahead[n:]
		return n, nil
	case a.last != nil:
		return 0, a.last
	}
	return a.receive(p)
}

// receive reads from the tracker.
func (a *attempt) receive(p []byte) (int, error) {
	a.waiting.Store(a.ctx.Err() == nil)
	n, err := a.body.Read(p)
	total, why := a.received.Add(int64(n)), a.ended()
	switch limit := a.call.MaxBody; {
	case limit > 0 && total > limit:
		err = a.broken(a.call.newError(BadResponse, 0, errors.New("the response body is longer than its caller reads")))
	case err == nil:
		a.waiting.Store(false)
	case errors.Is(err, io.EOF):
		a.dataEnded()
	case why != nil:
		err = a.broken(why)
	case isTimeout(err):
		err = a.broken(a.call.newError(Timeout, 0, errors.New("no bytes of the response for too long")))
	default:
		err = a.broken(a.call.newError(CutShort, 0, discreet(err)))
	}
	a.last = err
	return n, err
}

// broken ends the attempt with a body that is not whole.
func (a *attempt) broken(e *Error) error {
	e.Unknown = !a.read
	a.finish(e)
	return e
}

// dataEnded gives the slot back. The breaker waits for Close, because the caller may still Fail the response.
func (a *attempt) dataEnded() {
	a.whole.Store(true)
	if c := a.conn.Swap(nil); c != nil {
		if c.endResponse() && a.usable {
			a.call.stack.pool.put(c)
		} else {
			_ = c.Close()
		}
	}
	a.releaseSlot()
}

// Close before the end is the reader's choice and no error, unless the context has ended and left no choice.
func (a *attempt) Close() error {
	if a.ended() != nil {
		a.expired()
	}
	a.finish(nil)
	return nil
}

// Fail reports that a response, although whole, was not what was due (HTML where JSON was due): the breaker counts it
// as a failure and the call's Sample has BadResponse. It must be called with resp.Body before that is closed; other readers are ignored.
func Fail(body io.Reader, err error) {
	if a, ok := body.(*attempt); ok {
		a.finish(a.call.newError(BadResponse, 0, err))
	}
}

// expired follows the end of the context, or of the attempt for another reason, which is too late to matter when all data were read. Before there is a response the end of
// the connection ends the attempt.
func (a *attempt) expired() {
	a.disconnect()
	a.mu.Lock()
	responded := a.resp != nil
	a.mu.Unlock()
	switch {
	case a.whole.Load():
		a.finish(nil)
	case responded:
		a.finish(a.ended())
	}
}

// disconnect closes the connection unless the response was whole.
func (a *attempt) disconnect() {
	if c := a.conn.Swap(nil); c != nil {
		_ = c.Close()
	}
}

// finish ends the attempt once. It returns when the end has been recorded and reported, by this or another goroutine: a reader that gets an
// error may act on it at once, and the end of the context is noticed in another goroutine than its Read.
func (a *attempt) finish(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.over, a.err = true, err
	if a.stop != nil {
		a.stop()
	}
	a.end(nil)
	if a.breaker != nil {
		reason := ReasonOf(err)
		if reason == Timeout && !a.waiting.Load() || a.connHadEnded(err) {
			reason = Canceled // the client was slow to take the response, or the tracker did not take the request
		}
		if reason.failed() {
			a.call.stack.Limiter.failed()
		}
		if a.patience > 0 && a.resp == nil && reason.silent() {
			reason = Canceled // there were more calls than workers, which says nothing about the tracker
		}
		a.breaker.finish(&a.admission, reason)
	}
	a.disconnect()
	a.releaseSlot()
	if a.reports {
		a.call.report(a, a.err)
	}
}

// connHadEnded reports whether an error is that of a kept connection that ended without a response. It says nothing about how the tracker
// responds.
func (a *attempt) connHadEnded(err error) bool { return a.reused && ReasonOf(err) == Reset }

func (a *attempt) releaseSlot() {
	if a.hasSlot.CompareAndSwap(true, false) {
		a.call.stack.Limiter.release(a.began, a.took)
	}
}

// result returns why the attempt has ended, nil while it has not.
func (a *attempt) result() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// deliver returns the result of the call, which ends with this attempt and is reported then.
func (a *attempt) deliver() (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resp == nil {
		return nil, a.err
	}
	if a.reports = true; a.over {
		a.call.report(a, a.err)
	}
	return a.resp, nil
}
