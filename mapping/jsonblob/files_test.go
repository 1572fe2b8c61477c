package jsonblob

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"
)

// TestFilesServeAnotherPayload has a shorter payload written over a longer one, whose reader gets nothing of it.
func TestFilesServeAnotherPayload(t *testing.T) {
	files := &Files{Max: 1}
	opts := SplitOptions{Limits: Limits{BlobMemory: -1}, Dir: t.TempDir(), Files: files}
	before := openSpools(t)
	long, short := strings.Repeat("AAAA", 2000), strings.Repeat("BBBB", 10)
	_, first := mustSplit(t, `{"data":"`+long+`"}`, opts)
	reader := first[0].Reader()
	if _, err := io.ReadFull(reader, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	must(t, CloseBlobs(first))
	_, second := mustSplit(t, `{"data":"`+short+`"}`, opts)
	if n := openSpools(t) - before; n != 1 {
		t.Errorf("%d files are open for one payload after another", n)
	}
	if n, err := first[0].spool.ReadAt(make([]byte, 8), 0); n > 0 || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a payload without references can be read: %d bytes, %v", n, err)
	}
	if n, err := reader.Read(make([]byte, 8)); n > 0 || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a reader of a closed payload reads on: %d bytes, %v", n, err)
	}
	if text, err := io.ReadAll(second[0].Reader()); string(text) != short || err != nil {
		t.Errorf("the second payload is %q, %v", text, err)
	}
	_, third := mustSplit(t, `{"data":"`+long+`"}`, opts)
	must(t, errors.Join(CloseBlobs(second), CloseBlobs(third)))
	if n := openSpools(t) - before; n != 1 {
		t.Errorf("%d files are kept, and should be 1", n)
	}
	for end := time.Now().Add(time.Minute); openSpools(t) > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a file without use stays open")
		}
	}
}
