package mapping

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// BlobError says that the place where payloads wait failed, such as a full disk: nobody who sent or answered the
// request is to blame for it.
type BlobError struct {
	Op  string // create, write, read, close
	Err error
}

// Error implements error.
func (e *BlobError) Error() string { return e.Op + " the store of a large payload: " + e.Err.Error() }

// Unwrap gives what the operating system said.
func (e *BlobError) Unwrap() error { return e.Err }

// blobSpool is where all blobs of one document lie one after the other, so that a document of many attachments costs one
// open file and one threshold. Split writes it alone; afterwards it is only read, by anyone, until the last blob is closed.
type blobSpool struct {
	dir   string
	limit int64 // of bytes in memory
	size  int64

	mu   sync.RWMutex // for what release takes away
	mem  []byte
	file *os.File
	name string // when the file could not be unlinked while open
	refs int
}

// newBlobSpool makes a spool with one reference, the maker's own.
func newBlobSpool(dir string, limit int64) *blobSpool {
	return &blobSpool{dir: dir, limit: limit, refs: 1}
}

// write appends p.
func (s *blobSpool) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if s.file == nil && s.size+int64(len(p)) > s.limit {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if s.file == nil {
		s.mem = append(s.room(len(p)), p...)
	} else if _, err := s.file.WriteAt(p, s.size); err != nil {
		return &BlobError{Op: "write", Err: err}
	}
	s.size += int64(len(p))
	return nil
}

// room is what is in memory, with room for n bytes more. A payload that outgrows its first piece is likely to reach the
// threshold, so the usual threshold is then taken at once instead of by doubling.
func (s *blobSpool) room(n int) []byte {
	if s.size == 0 || cap(s.mem)-int(s.size) >= n {
		return s.mem[:s.size]
	}
	more := max(int64(n), min(s.limit, defaultBlobMemory)-s.size)
	return slices.Grow(s.mem[:s.size], int(more))
}

// spill moves what is in memory to a file. The file loses its name at once where the system allows that, so that
// nothing is left behind however the process ends.
func (s *blobSpool) spill() error {
	file, err := os.CreateTemp(s.dir, "portico-blob-*")
	if err != nil {
		return &BlobError{Op: "create", Err: err}
	}
	if os.Remove(file.Name()) != nil {
		s.name = file.Name()
	}
	s.file = file
	if _, err := file.WriteAt(s.mem[:s.size], 0); err != nil {
		return &BlobError{Op: "write", Err: err}
	}
	s.mem = nil
	return nil
}

// truncate forgets what was written from size on.
func (s *blobSpool) truncate(size int64) { s.size = size }

// view is the piece when it lies in memory, and nil otherwise.
func (s *blobSpool) view(off, n int64) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mem == nil {
		return nil
	}
	return s.mem[off : off+n : off+n]
}

// readAt fills p or fails.
func (s *blobSpool) readAt(p []byte, off int64) (int, error) {
	s.mu.RLock()
	mem, file := s.mem, s.file
	s.mu.RUnlock()
	if mem != nil {
		return copy(p, mem[off:]), nil
	}
	if file == nil {
		return 0, &BlobError{Op: "read", Err: fs.ErrClosed}
	}
	n, err := file.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, &BlobError{Op: "read", Err: err}
}

// retain adds a reference for a blob. Only the maker of the spool calls it, before it hands the blob out.
func (s *blobSpool) retain() { s.refs++ }

// release takes one reference away, and with the last one the storage.
func (s *blobSpool) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs--; s.refs > 0 {
		return nil
	}
	file := s.file
	s.mem, s.file = nil, nil
	if file == nil {
		return nil
	}
	err := file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	if err != nil {
		return &BlobError{Op: "close", Err: err}
	}
	return nil
}
