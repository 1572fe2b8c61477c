package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"

	"portico/mapping"
)

// withBody gives a request the body that the tracker shall get: the client's own, read to its end before a tracker is asked. So
// a slow client holds none of the tracker's few slots, and every body has a length, because real trackers lose chunked ones
// (wire-facts.md, section 1). Calls of the older interfaces are looked into on the way.
func (s *Server) withBody(r *http.Request) (*http.Request, error) {
	limit := s.options.Limits.Body
	if r.ContentLength > limit {
		return nil, errTooLong(limit)
	}
	stored, size, err := s.spool(boundedBody(r.Body, limit))
	if err != nil {
		return nil, err
	}
	on := &passing{changesFlagTypes: isFlagTypePage(r)}
	if carriesCall(r) {
		if on.changesFlagTypes, err = looksIntoCall(scriptOf(r.URL.Path), stored); err != nil {
			return nil, errors.Join(err, stored.Close())
		}
	}
	r = r.WithContext(context.WithValue(r.Context(), passingKey{}, on))
	r.Body, r.ContentLength, r.TransferEncoding = stored, size, nil
	return r, nil
}

// looksIntoCall tells whether a stored call may change flag types.
func looksIntoCall(script string, stored io.ReadSeeker) (bool, error) {
	head, err := io.ReadAll(io.LimitReader(stored, callLimit+1))
	if err == nil {
		_, err = stored.Seek(0, io.SeekStart)
	}
	if err != nil {
		return false, &mapping.BlobError{Op: "read", Err: err}
	}
	return callChangesFlagTypes(script, head, len(head) <= callLimit), nil
}

// passing is what is known of a request on its way to the tracker.
type passing struct {
	changesFlagTypes bool
	// change is known of those that may change flag types.
	change changingCall
	// target is the tracker that it goes to.
	target *Target
	// credentials are those in the body of a REST request.
	credentials mapping.Members
}

type passingKey struct{}

// passingOf finds what withBody found out about a request.
func passingOf(r *http.Request) *passing {
	if on, ok := r.Context().Value(passingKey{}).(*passing); ok {
		return on
	}
	return &passing{}
}

// spoolMemory is the size up to which a passing body stays in memory, if payloads of that size do.
const spoolMemory = 64 << 10

// spool reads a body to its end, into memory or, where it is large, into a file without a name.
func (s *Server) spool(body io.Reader) (io.ReadSeekCloser, int64, error) {
	if body == http.NoBody { // most requests that wait have none, and no room is made for it
		return inMemory{bytes.NewReader(nil)}, 0, nil
	}
	memory := min(max(s.options.Limits.BlobMemory, 0), spoolMemory)
	head, err := io.ReadAll(io.LimitReader(body, memory+1))
	if err != nil {
		return nil, 0, err
	}
	if int64(len(head)) <= memory {
		return inMemory{bytes.NewReader(head)}, int64(len(head)), nil
	}
	stored, err := newSpooled(s.options.BlobDir)
	if err != nil {
		return nil, 0, &mapping.BlobError{Op: "create", Err: err}
	}
	size, err := io.Copy(stored, io.MultiReader(bytes.NewReader(head), body))
	if err == nil {
		_, err = stored.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(err, stored.Close())
	}
	return stored, size, nil
}

// inMemory is a small stored body.
type inMemory struct{ *bytes.Reader }

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

// spooled is a large stored body. Closing it once or more removes it.
type spooled struct {
	file   *os.File
	named  bool // the system keeps the name of an open file
	closed atomic.Bool
}

// newSpooled makes a file and takes its name away at once where the system allows that, so that nothing is left behind however
// the process ends.
func newSpooled(dir string) (*spooled, error) {
	file, err := os.CreateTemp(dir, "portico-body-*")
	if err != nil {
		return nil, fmt.Errorf("make a file: %w", err)
	}
	return &spooled{file: file, named: os.Remove(file.Name()) != nil}, nil
}

// Write implements io.Writer. Its error tells that nobody who sent the body is to blame.
func (b *spooled) Write(p []byte) (int, error) {
	n, err := b.file.Write(p)
	if err != nil {
		err = &mapping.BlobError{Op: "write", Err: err}
	}
	return n, err
}

// Read implements io.Reader.
func (b *spooled) Read(p []byte) (int, error) { return b.file.Read(p) }

// Seek implements io.Seeker.
func (b *spooled) Seek(offset int64, whence int) (int64, error) { return b.file.Seek(offset, whence) }

// Close implements io.Closer.
func (b *spooled) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	err := b.file.Close()
	if b.named {
		err = errors.Join(err, os.Remove(b.file.Name()))
	}
	return err
}
