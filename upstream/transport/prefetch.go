package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// replay is an answer whose beginning was read ahead.
type replay struct {
	head bytes.Reader
	tail io.ReadCloser
	end  error // what reading ahead ended with; nil when there is more in tail
}

// prefetch reads up to limit bytes of the answer, puts them back in front of the rest, and returns the error that
// cut it short, if one did. A small answer is whole after that, so a cut one can still be asked for again.
func prefetch(resp *http.Response, limit int) error {
	if resp.Body == http.NoBody {
		return nil
	}
	head, end := readHead(resp.Body, resp.ContentLength, limit)
	return putBack(resp, head, end)
}

// prefetchFirst is prefetch for an answer that goes out as it comes: it waits for the first bytes only.
func prefetchFirst(resp *http.Response) error {
	if resp.Body == http.NoBody {
		return nil
	}
	head := make([]byte, firstBytes)
	n, end := 0, error(nil)
	for n == 0 && end == nil {
		n, end = resp.Body.Read(head)
	}
	return putBack(resp, head[:n], end)
}

// firstBytes are read ahead of a streamed answer: what has come with its header, most of the time.
const firstBytes = 1 << 10

// putBack puts what was read in front of the rest, and tells whether the answer was cut short there.
func putBack(resp *http.Response, head []byte, end error) error {
	r := &replay{tail: resp.Body, end: end}
	r.head.Reset(head)
	resp.Body = r
	if errors.Is(end, io.EOF) && !errors.Is(end, io.ErrUnexpectedEOF) {
		return nil
	}
	return end
}

// readHead reads until limit or an error, the end included.
func readHead(body io.Reader, length int64, limit int) ([]byte, error) {
	size := 8 << 10
	if length >= 0 && length < int64(limit) {
		size = int(length) + 1 // one more, so that the end is seen
	}
	head := make([]byte, 0, min(size, limit))
	for len(head) < limit {
		if len(head) == cap(head) {
			head = append(make([]byte, 0, min(2*cap(head), limit)), head...)
		}
		n, err := body.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err != nil {
			return head, err
		}
	}
	return head, nil
}

// Read gives what was read ahead, then how that ended or the rest.
func (r *replay) Read(p []byte) (int, error) {
	if r.head.Len() == 0 {
		if r.end != nil {
			return 0, r.end
		}
		return r.tail.Read(p)
	}
	n, _ := r.head.Read(p)
	if r.head.Len() == 0 {
		return n, r.end
	}
	return n, nil
}

// Close closes the answer itself.
func (r *replay) Close() error { return r.tail.Close() }

// Fail passes the word inwards.
func (r *replay) Fail(err error) { Fail(r.tail, err) }
