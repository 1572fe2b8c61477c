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

// withBody gives a request the body that the tracker shall get: the client's own, but always with a length, because real
// trackers lose chunked bodies (wire-facts.md, section 1). Calls of the older interfaces are looked into on the way.
func (s *Server) withBody(r *http.Request) (*http.Request, error) {
	limit := s.options.Limits.Body
	if r.ContentLength > limit {
		return nil, errTooLong(limit)
	}
	on := &passing{}
	r = r.WithContext(context.WithValue(r.Context(), passingKey{}, on))
	body := r.Body
	r.Body = &clientBody{Reader: boundedBody(body, limit), Closer: body, failed: &on.failed}
	on.changesFlagTypes = isFlagTypePage(r)
	if carriesCall(r) {
		head, err := io.ReadAll(io.LimitReader(r.Body, callLimit+1))
		if err != nil {
			return nil, err
		}
		whole := len(head) <= callLimit
		on.changesFlagTypes = callChangesFlagTypes(scriptOf(r.URL.Path), head, whole)
		r.Body = readCloser{io.MultiReader(bytes.NewReader(head), r.Body), body}
		if whole {
			r.ContentLength, r.TransferEncoding = int64(len(head)), nil
		}
	}
	if r.ContentLength >= 0 {
		return r, nil
	}
	stored, size, err := s.spool(r.Body)
	r.Body, r.ContentLength, r.TransferEncoding = stored, size, nil
	return r, err
}

// passing is what is known of a request on its way to the tracker.
type passing struct {
	changesFlagTypes bool
	// target is the tracker that it goes to.
	target *Target
	// credentials are those in the body of a REST request.
	credentials mapping.Members
	// failed is how reading the client's body failed.
	failed atomic.Pointer[error]
}

type passingKey struct{}

// passingOf finds what withBody found out about a request.
func passingOf(r *http.Request) *passing {
	if on, ok := r.Context().Value(passingKey{}).(*passing); ok {
		return on
	}
	return &passing{}
}

// readCloser reads from one place and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// clientBody is the body of a client on its way to the tracker. It remembers how the client failed, which must not be
// taken for a failure of the tracker.
type clientBody struct {
	io.Reader
	io.Closer
	failed *atomic.Pointer[error]
}

// Read implements io.Reader.
func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// spool reads a body of unknown length to its end, into memory or, where it is large, into a file without a name.
func (s *Server) spool(body io.Reader) (io.ReadCloser, int64, error) {
	memory := s.options.Limits.BlobMemory
	head, err := io.ReadAll(io.LimitReader(body, max(memory, 0)+1))
	if err != nil || int64(len(head)) <= memory {
		return io.NopCloser(bytes.NewReader(head)), int64(len(head)), err
	}
	file, err := os.CreateTemp(s.options.BlobDir, "portico-body-*")
	if err != nil {
		return http.NoBody, 0, fmt.Errorf("store a request body: %w", err)
	}
	stored := &spooled{File: file}
	size, err := io.Copy(file, io.MultiReader(bytes.NewReader(head), body))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return http.NoBody, 0, errors.Join(err, stored.Close())
	}
	return stored, size, nil
}

// spooled is a stored body. Closing it once or more removes it.
type spooled struct {
	*os.File
	closed atomic.Bool
}

// Close implements io.Closer.
func (b *spooled) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return errors.Join(b.File.Close(), os.Remove(b.Name()))
}
