package jsonblob

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

// digestOf is the digest of a Blob that can be read.
func digestOf(t testing.TB, b *Blob) [32]byte {
	t.Helper()
	digest, err := b.Digest()
	must(t, err)
	return digest
}

func TestNilBlobIsEmpty(t *testing.T) {
	var b *Blob
	text, err := io.ReadAll(b.Reader())
	if err != nil || len(text) != 0 || b.Size() != 0 || b.EncodedLen() != 0 || b.Close() != nil {
		t.Errorf("the nil blob has content: %q, %v, %v", text, err, b)
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
			if b.Size() != int64(n) || digestOf(t, b) != sha256.Sum256(content) || b.EncodedLen() != int64(len(encoded)) {
				t.Errorf("%d bytes, memory %d: blob of %d bytes, %d characters", n, memory, b.Size(), b.EncodedLen())
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

// TestEveryByteOfBase64: in a text of 44 characters each byte is taken, left out or refused at its place, wherever it stands.
func TestEveryByteOfBase64(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for at := range 40 {
		for c := range 256 {
			text := []byte(strings.Repeat("Az09+/", 8)[:44])
			text[at] = byte(c)
			b, err := BlobFromReader(bytes.NewReader(text), SplitOptions{})
			syntax, refused := errors.AsType[*SyntaxError](err)
			switch {
			case strings.IndexByte(alphabet, byte(c)) >= 0:
				if err != nil || b.EncodedLen() != 44 {
					t.Errorf("%#x at %d: %v", c, at, err)
				}
			case strings.IndexByte(" \t\r\n", byte(c)) >= 0:
				if err != nil || b.Size() != 32 {
					t.Errorf("%#x at %d: %v", c, at, err)
				}
			case !refused || c != '=' && syntax.Offset != int64(at):
				t.Errorf("%#x at %d: %v", c, at, err)
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
	if _, err := BlobFromReader(strings.NewReader(strings.Repeat("A", 5000)+"!"), opts); err == nil || openSpools(t) != before {
		t.Errorf("%d files are open after a text that is wrong (%v)", openSpools(t)-before, err)
	}
}

// TestSizeIsAHint: what is longer than stays in memory goes to a file early, and what fits takes its memory at once. A size that is not
// right changes nothing else.
func TestSizeIsAHint(t *testing.T) {
	for _, c := range []struct {
		chars, size int64
		file        bool
	}{
		{1000, 1 << 20, false}, // the first piece is all there is
		{100_000, 1 << 20, true},
		{100_000, 100_100, false},
		{100_000, 10, false},
		{300_000, 10, true},
	} {
		before, asked := openSpools(t), 0
		opts := SplitOptions{Size: c.size, Limits: Limits{BlobMemory: 200_000}, Spare: func(more int) bool { asked += more; return true }}
		text := `{"data":"` + strings.Repeat("A", int(c.chars)) + `"}`
		skeleton, blobs := mustSplit(t, text, opts)
		if file := openSpools(t) > before; file != c.file {
			t.Errorf("%+v: in a file: %v", c, file)
		}
		if limit := 200_000 + largeWindow; asked > limit {
			t.Errorf("%+v: asked for %d bytes of memory, not %d", c, asked, limit)
		}
		if got := rejoin(t, skeleton, blobs); got != text {
			t.Errorf("%+v: the document has changed", c)
		}
	}
}

// TestWithoutSpareMemory: what comes beyond the first piece goes to a file where no memory is spared for it.
func TestWithoutSpareMemory(t *testing.T) {
	before := openSpools(t)
	text := `{"data":"` + strings.Repeat("QUJD", 5000) + `"}`
	skeleton, blobs := mustSplit(t, text, SplitOptions{Spare: func(int) bool { return false }})
	if n := openSpools(t); n != before+1 {
		t.Errorf("%d files are open", n-before)
	}
	if got := rejoin(t, skeleton, blobs); got != text {
		t.Error("the document has changed")
	}
	stored, err := Store(strings.NewReader(text), SplitOptions{Limits: Limits{BlobMemory: 1 << 20}, Spare: func(int) bool { return false }})
	must(t, err)
	if got, err := io.ReadAll(stored); err != nil || string(got) != text || openSpools(t) != before+2 {
		t.Errorf("stored %d bytes (%v), with %d files open", len(got), err, openSpools(t)-before)
	}
	if err := errors.Join(stored.Close(), stored.Close()); err != nil || openSpools(t) != before+1 {
		t.Errorf("after Close: %v, %d files are open", err, openSpools(t)-before)
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
		if _, err := blobs[0].Digest(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Digest after Close: %v", err)
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
	spool := newSpool(SplitOptions{Dir: t.TempDir()}, -1)
	must(t, spool.write([]byte("QUJD")))
	_ = spool.file.Close() // the disk goes away
	if err := spool.write([]byte("QUJD")); !errors.As(err, &store) || store.Op != "write" {
		t.Errorf("write: %v", err)
	}
	if _, err := spool.ReadAt(make([]byte, 4), 0); !errors.As(err, &store) || store.Op != "read" {
		t.Errorf("read: %v", err)
	}
	if err := spool.release(); !errors.As(err, &store) || store.Op != "close" {
		t.Errorf("close: %v", err)
	}
}

func TestShortFileIsNoEnd(t *testing.T) {
	_, blobs := mustSplit(t, `{"data":"QUJDQUJD"}`, SplitOptions{Limits: Limits{BlobMemory: -1}})
	must(t, blobs[0].spool.file.Truncate(4))
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
		{strings.NewReader("QUJD?"), SyntaxBase64, 4},
		{strings.NewReader(`QUJD"`), SyntaxBase64, 4},
		{strings.NewReader("QQ==\nQ"), SyntaxBase64, 5},
		{strings.NewReader("QUJDQ"), SyntaxBase64, 5},
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
