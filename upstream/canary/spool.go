package canary

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spoolMemory is how much of one answer stays in memory; the rest lies in a file.
const spoolMemory = 256 << 10

// errSpoolFull says that all answers together take as much room as they may.
var errSpoolFull = errors.New("the answers that wait take too much room")

// spool holds one answer until it is compared: in memory up to spoolMemory, in a
// file without a name up to most bytes, and beyond that only its digest. Of long
// content it holds the digest anyway, and does not count it.
type spool struct {
	disk *budget
	dir  string
	most int64
	// shape is that of the answer, for its digest.
	shape *shape
	// end is where an answer is given up on, 0 when it never is.
	end int64

	// unread is an answer that nobody has looked at yet, instead of all that follows.
	unread []byte
	filter contentFilter
	memory []byte
	file   *os.File
	onDisk int64
	// size is that of the answer, kept what is left of it without long content.
	size, kept int64
	digest     *looseDigest // set when kept is more than most
}

// Write implements io.Writer. It fails with errSpoolFull or errEndless, or as files do.
func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return len(p), s.keep(s.filter.pass(p))
}

// read looks at an answer that is unread.
func (s *spool) read() error {
	text := s.unread
	s.unread, s.size = nil, s.size-int64(len(text))
	_, err := s.Write(text)
	return err
}

func (s *spool) keep(p []byte) error {
	s.kept += int64(len(p))
	switch {
	case s.end > 0 && s.kept > s.end:
		return errEndless
	case s.digest != nil:
		_, _ = s.digest.Write(p) // a hash never fails
	case s.kept > s.most:
		return s.overflow(p)
	case s.file == nil && len(s.memory)+len(p) <= spoolMemory:
		s.memory = append(s.memory, p...)
	default:
		return s.store(p)
	}
	return nil
}

// store puts p into the file, after what was in memory.
func (s *spool) store(p []byte) error {
	if s.file == nil {
		if err := s.open(); err != nil {
			return err
		}
		rest := s.memory
		s.memory = nil
		if err := s.append(rest); err != nil {
			return err
		}
	}
	return s.append(p)
}

func (s *spool) append(p []byte) error {
	n := int64(len(p))
	if !s.disk.take(n) {
		return errSpoolFull
	}
	s.onDisk += n
	_, err := s.file.Write(p)
	return err
}

// open makes the file and takes its name away at once, so that it goes with the
// process.
func (s *spool) open() error {
	file, err := os.CreateTemp(s.dir, "portico-answer-*")
	if err != nil {
		return err
	}
	s.file = file
	return os.Remove(file.Name())
}

// overflow goes over to the digest.
func (s *spool) overflow(p []byte) error {
	digest, err := s.sum()
	if err != nil {
		return err
	}
	_, _ = digest.Write(p) // a hash never fails
	s.release()
	s.digest = digest
	return nil
}

// sum hashes what is kept.
func (s *spool) sum() (*looseDigest, error) {
	digest := newLooseDigest(s.shape)
	_, err := io.Copy(digest, s.reader())
	return digest, err
}

// reader reads what is kept from its beginning.
func (s *spool) reader() io.Reader {
	if s.file == nil {
		return bytes.NewReader(s.memory)
	}
	return io.NewSectionReader(s.file, 0, s.onDisk)
}

// payload is size and looseDigest of the whole answer, with the stamps of content.
func (s *spool) payload() (Payload, error) {
	digest := s.digest
	if digest == nil {
		var err error
		if digest, err = s.sum(); err != nil {
			return Payload{}, err
		}
	}
	return Payload{Size: s.size, SHA256: digest.text()}, nil
}

// release gives memory and file back.
func (s *spool) release() {
	if s.file != nil {
		_ = s.file.Close() // there is nothing to lose
	}
	s.disk.give(s.onDisk)
	s.unread, s.memory, s.file, s.onDisk = nil, nil, nil, 0
}
