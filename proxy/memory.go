package proxy

import (
	"io"
	"sync/atomic"
	"time"

	"portico/mapping"
)

// memory is what the bodies of all requests together may take up while they are looked at.
type memory struct{ left atomic.Int64 }

// freeShare is what each request has anyhow, so that who takes up the rest keeps nobody from asking what most ask.
const freeShare = 64 << 10

// share is what one request has of the memory.
type share struct {
	of *memory
	// size is what was asked for, taken what of it came out of the memory.
	size, taken int64
}

// take asks for more.
func (s *share) take(more int) error {
	s.size += int64(more)
	lacking := s.size - freeShare - s.taken
	if lacking <= 0 {
		return nil
	}
	if s.of.left.Add(-lacking) < 0 {
		s.of.left.Add(lacking)
		failed := failure(mapping.CodeUnavailable, mapping.ReasonOverload, "Too many large requests are being read. Ask again later.", nil)
		failed.RetryAfter = time.Second
		return failed
	}
	s.taken += lacking
	return nil
}

// end gives everything back.
func (s *share) end() {
	s.of.left.Add(s.taken)
	s.size, s.taken = 0, 0
}

// taking reads what is kept in memory, up to a limit for all that the request keeps there.
type taking struct {
	io.Reader
	share *share
	limit int
}

// Read implements io.Reader. It asks for memory in small pieces, as the text comes.
func (t taking) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p[:min(len(p), 16<<10)])
	if failed := t.share.take(n); failed != nil {
		return 0, failed
	}
	if t.share.size > int64(t.limit) {
		return 0, &mapping.LimitError{Kind: mapping.LimitSkeleton, Max: int64(t.limit)}
	}
	return n, err
}
