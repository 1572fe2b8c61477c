package journal

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// chunkLen is how much of a content is encrypted at a time.
	chunkLen = 64 << 10
	// spoolSuffix is how names of spool files end.
	spoolSuffix = ".spool"
	// orphanAge is how old a file without an entry must be to be removed. Its entry may not be committed yet.
	orphanAge = time.Hour
)

// spool is a directory of encrypted contents that are too large for the store. All processes that share a store share it.
type spool struct {
	dir  string
	keys *Keys
}

// write encrypts a content to a new file, which is on the disk when write returns.
func (s spool) write(content io.Reader) (name string, err error) {
	name = rand.Text() + spoolSuffix
	file, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("spool a content: %w", err)
	}
	err = s.encrypt(file, name, content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("spool a content: %w", err), s.remove(name))
	}
	return name, nil
}

// encrypt writes chunks, each with its length before it. A chunk is bound to the file and to its place in it, and
// the last one, which is shorter, to being the last.
func (s spool) encrypt(to io.Writer, name string, content io.Reader) error {
	chunk := make([]byte, chunkLen)
	for i := 0; ; i++ {
		n, err := io.ReadFull(content, chunk)
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		sealed := s.keys.seal(chunk[:n], chunkName(name, i, last))
		if _, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(sealed))), sealed...)); err != nil || last {
			return err
		}
	}
}

func chunkName(file string, i int, last bool) string {
	return file + " " + strconv.Itoa(i) + " " + strconv.FormatBool(last)
}

// open reads what write wrote. The caller closes it.
func (s spool) open(name string) (io.ReadCloser, error) {
	file, err := os.Open(filepath.Join(s.dir, filepath.Base(name)))
	if err != nil {
		return nil, fmt.Errorf("open a spooled content: %w", err)
	}
	return &spooled{File: file, in: bufio.NewReader(file), name: name, keys: s.keys}, nil
}

// remove removes a file. One that is not there is no error.
func (s spool) remove(name string) error {
	if name == "" {
		return nil
	}
	err := os.Remove(filepath.Join(s.dir, filepath.Base(name)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// orphans lists old files, which belong to no entry unless the store says so.
func (s spool) orphans() (names []string) {
	files, _ := os.ReadDir(s.dir) // what cannot be read may be the next time
	for _, file := range files {
		info, err := file.Info()
		if err == nil && strings.HasSuffix(file.Name(), spoolSuffix) && time.Since(info.ModTime()) > orphanAge {
			names = append(names, file.Name())
		}
	}
	return names
}

// spooled decrypts a file while it is read.
type spooled struct {
	*os.File
	in    *bufio.Reader
	name  string
	keys  *Keys
	i     int
	chunk []byte
	last  bool
}

// Read implements io.Reader.
func (s *spooled) Read(p []byte) (int, error) {
	for len(s.chunk) == 0 {
		if s.last {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, fmt.Errorf("read a spooled content: %v", err) //nolint:errorlint // an end that comes too early is no io.EOF
		}
	}
	n := copy(p, s.chunk)
	s.chunk = s.chunk[n:]
	return n, nil
}

func (s *spooled) next() error {
	var length [4]byte
	if _, err := io.ReadFull(s.in, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > chunkLen+idLen+64 {
		return errors.New("a chunk is too long")
	}
	sealed := make([]byte, n)
	if _, err := io.ReadFull(s.in, sealed); err != nil {
		return err
	}
	_, err := s.in.Peek(1)
	s.last = errors.Is(err, io.EOF)
	s.chunk, err = s.keys.open(sealed, chunkName(s.name, s.i, s.last))
	s.i++
	return err
}
