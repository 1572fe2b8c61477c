package mapping

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// openSpools counts the files of blobs that this process holds open.
func openSpools(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not list open files")
	}
	n := 0
	for _, f := range files {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); err == nil && strings.Contains(target, "portico-blob-") {
			n++
		}
	}
	return n
}

func mustSplit(t *testing.T, text string, opts SplitOptions) ([]byte, []*Blob) {
	t.Helper()
	skeleton, blobs, err := Split(nil, strings.NewReader(text), opts)
	if err != nil {
		t.Fatalf("Split: %v", err)
	}
	t.Cleanup(func() { _ = CloseBlobs(blobs) })
	return skeleton, blobs
}

func TestNilBlobIsEmpty(t *testing.T) {
	var b *Blob
	text, err := io.ReadAll(b.Reader())
	if err != nil || len(text) != 0 || b.Size() != 0 || b.EncodedLen() != 0 || b.Close() != nil || !b.Base64() {
		t.Errorf("the nil blob has content: %q, %v, %v", text, err, b)
	}
	if b.Digest() == BlobFromRaw(nil).Digest() {
		t.Error("no blob and an empty blob have the same digest")
	}
}

func TestBlobDescribesContent(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 24575, 24576, 24577, 24578, 49152, 100000, 400001} {
		content := make([]byte, n)
		for i := range content {
			content[i] = byte(i * 31 >> 3)
		}
		encoded := base64.StdEncoding.EncodeToString(content)
		for _, memory := range []int64{0, -1, 1 << 30} {
			_, blobs := mustSplit(t, `{"data":"`+encoded+`"}`, SplitOptions{Limits: Limits{BlobMemory: memory}, Dir: t.TempDir()})
			b := blobs[0]
			if b.Size() != int64(n) || b.Digest() != sha256.Sum256(content) || b.EncodedLen() != int64(len(encoded)) {
				t.Errorf("%d bytes, memory %d: blob %v of %d characters", n, memory, b, b.EncodedLen())
			}
			for range 2 { // each reader begins at the beginning
				if err := iotest.TestReader(b.Reader(), []byte(encoded)); n < 1000 && err != nil {
					t.Error(err)
				}
				var copied strings.Builder
				if _, err := io.Copy(&copied, b.Reader()); err != nil || copied.String() != encoded {
					t.Errorf("%d bytes, memory %d: copied %d characters, %v", n, memory, copied.Len(), err)
				}
			}
		}
	}
}

func TestBlobThreshold(t *testing.T) {
	text := func(n int) string { return `{"data":"` + strings.Repeat("A", n) + `"}` }
	before := openSpools(t)
	opts := SplitOptions{Limits: Limits{BlobMemory: 1000}, Dir: t.TempDir()}
	_, _ = mustSplit(t, text(1000), opts)
	if n := openSpools(t); n != before {
		t.Errorf("%d files are open for what fits into memory", n-before)
	}
	_, blobs := mustSplit(t, text(1004), opts)
	if n := openSpools(t); n != before+1 {
		t.Errorf("%d files are open for one byte beyond the threshold", n-before)
	}
	if names, err := os.ReadDir(opts.Dir); err != nil || len(names) != 0 {
		t.Errorf("the file has a name: %v, %v", names, err)
	}
	if err := CloseBlobs(blobs); err != nil {
		t.Error(err)
	}
	if n := openSpools(t); n != before {
		t.Errorf("%d files are open after Close", n-before)
	}
}

func TestBlobsShareOneFile(t *testing.T) {
	before := openSpools(t)
	item := `{"data":"` + strings.Repeat("QUJD", 100) + `"}`
	skeleton, blobs := mustSplit(t, `[`+strings.Repeat(item+",", 99)+item+`]`, SplitOptions{Limits: Limits{BlobMemory: 500}})
	if n := openSpools(t); n != before+1 || len(blobs) != 100 {
		t.Fatalf("%d files for %d blobs", n-before, len(blobs))
	}
	if got := rejoin(t, skeleton, blobs); got != `[`+strings.Repeat(item+",", 99)+item+`]` {
		t.Errorf("joined %s", got)
	}
	for range 2 { // closing twice counts once
		_ = CloseBlobs(blobs[:99])
	}
	if text, err := io.ReadAll(blobs[99].Reader()); err != nil || len(text) != 400 {
		t.Errorf("the last open blob gives %d characters, %v", len(text), err)
	}
	_ = blobs[99].Close()
	if n := openSpools(t); n != before {
		t.Errorf("%d files are open after the last Close", n-before)
	}
}

func TestCloseFreesMemory(t *testing.T) {
	_, blobs := mustSplit(t, `[{"data":"QUJD"},{"data":"QUJD"}]`, SplitOptions{})
	spool := blobs[0].spool
	_ = blobs[0].Close()
	if spool.mem == nil {
		t.Error("the memory of an open blob is gone")
	}
	if _ = blobs[1].Close(); spool.mem != nil {
		t.Error("the memory stays although all blobs are closed")
	}
}

// TestCloseRemovesNamedFile is for systems that do not let a file go while it is open.
func TestCloseRemovesNamedFile(t *testing.T) {
	dir := t.TempDir()
	_, blobs := mustSplit(t, `{"data":"QUJD"}`, SplitOptions{Limits: Limits{BlobMemory: -1}, Dir: dir})
	name := filepath.Join(dir, "left")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blobs[0].spool.name = name
	if err := blobs[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestClosedBlobFails(t *testing.T) {
	for _, memory := range []int64{0, -1} {
		_, blobs := mustSplit(t, `[{"data":"QUJD"},{"data":"QUJD"}]`, SplitOptions{Limits: Limits{BlobMemory: memory}})
		reader := blobs[0].Reader()
		for range 2 {
			if err := blobs[0].Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if _, err := reader.Read(make([]byte, 9)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Read after Close: %v", err)
		}
		if _, err := io.Copy(io.Discard, blobs[0].Reader()); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Copy after Close: %v", err)
		}
	}
}

func TestBlobConcurrentReaders(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 40000)
	want := base64.StdEncoding.EncodeToString(content)
	for _, memory := range []int64{-1, 1 << 30} {
		_, blobs := mustSplit(t, `{"data":"`+want+`"}`, SplitOptions{Limits: Limits{BlobMemory: memory}})
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				source := blobs[0].Reader()
				if i%2 == 0 {
					source = struct{ io.Reader }{source} // without WriteTo
				}
				text, err := io.ReadAll(source)
				if err != nil || string(text) != want {
					t.Errorf("read %d characters, %v", len(text), err)
				}
			})
		}
		readers.Wait()
		readers.Go(func() { _, _ = io.Copy(io.Discard, blobs[0].Reader()) }) // must not race with Close
		readers.Go(func() { _ = blobs[0].Close() })
		readers.Wait()
	}
}

func TestStoreFailureIsBlobError(t *testing.T) {
	opts := SplitOptions{Limits: Limits{BlobMemory: -1}, Dir: filepath.Join(t.TempDir(), "missing")}
	_, _, err := Split(nil, strings.NewReader(`{"data":"QUJD"}`), opts)
	var store *BlobError
	if !errors.As(err, &store) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if _, err = BlobFromReader(strings.NewReader("QUJD"), opts); !errors.As(err, &store) {
		t.Errorf("no directory: %v", err)
	}
	spool := newBlobSpool(t.TempDir(), -1)
	if err := spool.write([]byte("QUJD")); err != nil {
		t.Fatal(err)
	}
	_ = spool.file.Close() // the disk goes away
	if err := spool.write([]byte("QUJD")); !errors.As(err, &store) || store.Op != "write" {
		t.Errorf("write: %v", err)
	}
	if _, err := spool.readAt(make([]byte, 4), 0); !errors.As(err, &store) || store.Op != "read" {
		t.Errorf("read: %v", err)
	}
	if err := spool.release(); !errors.As(err, &store) || store.Op != "close" {
		t.Errorf("close: %v", err)
	}
}

func TestShortFileIsNoEnd(t *testing.T) {
	_, blobs := mustSplit(t, `{"data":"QUJDQUJD"}`, SplitOptions{Limits: Limits{BlobMemory: -1}})
	if err := blobs[0].spool.file.Truncate(4); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(blobs[0].Reader()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestBlobFromReaderRefuses(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		src  io.Reader
		kind SyntaxKind
		at   int64
	}{
		{strings.NewReader("QUJD?"), SyntaxBase64Alphabet, 4},
		{strings.NewReader(`QUJD"`), SyntaxBase64Alphabet, 4},
		{strings.NewReader("QQ==\nQ"), SyntaxBase64Padding, 5},
		{strings.NewReader("QUJDQ"), SyntaxBase64Length, 5},
	} {
		var syntax *SyntaxError
		if _, err := BlobFromReader(c.src, SplitOptions{}); !errors.As(err, &syntax) || syntax.Kind != c.kind || syntax.Offset != c.at {
			t.Errorf("got %v, want kind %d at %d", err, c.kind, c.at)
		}
	}
	if _, err := BlobFromReader(io.MultiReader(strings.NewReader("QUJD"), iotest.ErrReader(broken)), SplitOptions{}); !errors.Is(err, broken) {
		t.Errorf("broken source: %v", err)
	}
	var limit *LimitError
	if _, err := BlobFromReader(strings.NewReader("QUJDQ"), SplitOptions{Limits: Limits{Body: 4}}); !errors.As(err, &limit) {
		t.Errorf("beyond the limit: %v", err)
	}
}

func TestBlobFromText(t *testing.T) {
	for raw, ok := range map[string]bool{`"a\u00fc\"b"`: true, `""`: true, `12`: false, `"`: false, `null`: false} {
		b, got := BlobFromText([]byte(raw))
		if got != ok {
			t.Errorf("BlobFromText(%s): %v", raw, got)
		}
		if !ok {
			continue
		}
		var blobs []*Blob
		skeleton := AppendBlob([]byte(`[`), b, &blobs)
		if joined := rejoin(t, append(skeleton, ']'), blobs); joined != `[`+raw+`]` || b.Base64() {
			t.Errorf("BlobFromText(%s) joins to %s", raw, joined)
		}
	}
}
