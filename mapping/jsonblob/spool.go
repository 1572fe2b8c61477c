package jsonblob

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// BlobError says that the storage for payloads failed, because the disk is full for example. Neither the client nor the tracker is
// to blame for it.
type BlobError struct {
	Op  string // create, write, read, close
	Err error
}

// Error implements error.
func (e *BlobError) Error() string { return e.Op + " the store of a large payload: " + e.Err.Error() }

// Unwrap returns the error of the operating system.
func (e *BlobError) Unwrap() error { return e.Err }

// spool holds all blobs of one document one after the other, so that a document of many attachments costs one open file and one
// threshold. One goroutine writes it; afterwards any number may read it until the last reference is released.
type spool struct {
	opts  SplitOptions
	files *Files // not nil
	limit int64  // of bytes in memory
	size  int64
	mem   []byte
	file  *os.File // in place of mem, beyond the limit
	refs  atomic.Int64

	reading sync.RWMutex // held while a file is read
}

// newSpool makes a spool with one reference, that of its caller.
func newSpool(opts SplitOptions, limit int64) *spool {
	s := &spool{opts: opts, files: cmp.Or(opts.Files, new(Files)), limit: limit}
	s.refs.Store(1)
	return s
}

// write appends p.
func (s *spool) write(p []byte) error {
	if s.file == nil && !s.grow(len(p)) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if s.file == nil {
		s.mem = append(s.mem[:s.size], p...)
	} else if _, err := s.file.WriteAt(p, s.size); err != nil {
		return &BlobError{Op: "write", Err: err}
	}
	s.size += int64(len(p))
	return nil
}

// grow makes memory for n bytes more. It returns false where they must go to a file.
func (s *spool) grow(n int) bool {
	needed, capacity := s.size+int64(n), int64(cap(s.mem))
	if needed <= capacity {
		return true
	}
	if s.size > 0 { // the first piece may be the only one, and a slow client sends no more for a long time
		needed = max(needed, s.opts.Size, min(2*capacity, s.limit))
	}
	if needed > s.limit || s.opts.Spare != nil && !s.opts.Spare(int(needed-capacity)) {
		return false
	}
	s.mem = slices.Grow(s.mem[:s.size], int(needed-s.size))
	return true
}

// spill moves what is in memory to a file.
func (s *spool) spill() (err error) {
	if s.file, err = s.files.take(s.opts.Dir); err != nil {
		return &BlobError{Op: "create", Err: err}
	}
	if _, err := s.file.WriteAt(s.mem[:s.size], 0); err != nil {
		return &BlobError{Op: "write", Err: err}
	}
	s.mem = nil
	return nil
}

// ReadAt implements io.ReaderAt. It fills p or fails.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if s.file == nil {
		return copy(p, s.mem[off:s.size]), nil
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	if s.refs.Load() == 0 {
		return 0, &BlobError{Op: "read", Err: fs.ErrClosed}
	}
	n, err := s.file.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, &BlobError{Op: "read", Err: err}
}

// release ends one reference, and with the last one the use of the file. Memory is left to the garbage collector, as a reader may be using it.
func (s *spool) release() error {
	if s.refs.Add(-1) > 0 || s.file == nil {
		return nil
	}
	s.reading.Lock() // the file may serve another document now
	defer s.reading.Unlock()
	if err := s.files.keep(s.file, s.size); err != nil {
		return &BlobError{Op: "close", Err: err}
	}
	return nil
}

// Stored is a text that was read to its end. It stays in memory up to a threshold and is in a temporary file beyond it. It is
// read by one goroutine at a time.
type Stored struct {
	*io.SectionReader
	blob *Blob
}

// Store reads src to its end. Of opts it uses Dir, Size, Spare and Limits.BlobMemory. A text that cannot be stored is a *BlobError;
// other errors are those of src.
func Store(src io.Reader, opts SplitOptions) (*Stored, error) {
	s := newSpool(opts, opts.Limits.BlobMemory)
	in := newInput(src, math.MaxInt64, opts.Spare)
	defer in.recycle()
	var err error
	for err == nil && in.more() {
		err = s.write(in.unread())
		in.pos = in.end
	}
	if err == nil && !in.ended() {
		err = in.err
	}
	if err != nil {
		_ = s.release() // the first error is the one to tell
		return nil, err
	}
	return &Stored{io.NewSectionReader(s, 0, s.size), &Blob{spool: s}}, nil
}

// Close removes the text. Closing it again does nothing.
func (s *Stored) Close() error { return s.blob.Close() }
