package jsonblob

import (
	"os"
	"slices"
	"sync"
	"time"
)

const (
	keptFileSize = 32 << 20    // bytes of the longest file that is kept
	keptFileTime = time.Second // without use
)

// Files keeps the files of payloads for the next ones: to write over a file costs an eighth of what the system needs to allocate and free its
// space. A file has no name, and a spool reads no more of it than it has written. The zero value keeps none.
type Files struct {
	Max int // files that are kept at a time

	mu   sync.Mutex
	idle []*os.File
}

// take returns a file of the directory. A new one loses its name at once, so that nothing is left behind however the process ends.
func (f *Files) take(dir string) (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := len(f.idle) - 1; last >= 0 {
		file := f.idle[last]
		f.idle = f.idle[:last]
		return file, nil
	}
	file, err := os.CreateTemp(dir, "portico-blob-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	return file, err
}

// keep takes a file that is not used any more, or closes it.
func (f *Files) keep(file *os.File, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) >= f.Max || size > keptFileSize {
		return file.Close()
	}
	f.idle = append(f.idle, file)
	time.AfterFunc(keptFileTime, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if at := slices.Index(f.idle, file); at >= 0 {
			f.idle = slices.Delete(f.idle, at, at+1)
			_ = file.Close() // its content was used already
		}
	})
	return nil
}
