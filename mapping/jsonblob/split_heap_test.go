package jsonblob

import (
	"io"
	"math"
	"runtime"
	"testing"
)

// heapWatch samples the heap in use from within a stream, so that it looks at the moments that matter.
type heapWatch struct {
	base, peak uint64
	calls      int
}

func newHeapWatch() *heapWatch {
	runtime.GC()
	w := &heapWatch{}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.base = m.HeapInuse
	return w
}

func (w *heapWatch) sample() {
	if w.calls++; w.calls%50 > 0 {
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.peak = max(w.peak, m.HeapInuse)
}

// growth is by how much the heap was larger at its peak than at the beginning.
func (w *heapWatch) growth() int64 { return int64(w.peak) - int64(w.base) }

// attachmentSource writes a request with a payload of n characters, without ever having it as a whole.
type attachmentSource struct {
	watch      *heapWatch
	head, tail string
	left       int
}

func (s *attachmentSource) Read(p []byte) (int, error) {
	s.watch.sample()
	switch {
	case s.head != "":
		n := copy(p, s.head)
		s.head = s.head[n:]
		return n, nil
	case s.left > 0:
		const pattern = "QUJDREVGR0hJSktM"
		n := 0
		for n+len(pattern) <= min(len(p), s.left) {
			n += copy(p[n:], pattern)
		}
		if n == 0 {
			n = copy(p[:min(len(p), s.left)], pattern)
		}
		s.left -= n
		return n, nil
	case s.tail != "":
		n := copy(p, s.tail)
		s.tail = s.tail[n:]
		return n, nil
	}
	return 0, io.EOF
}

// heapSink counts what is written to it.
type heapSink struct {
	watch *heapWatch
	n     int64
}

func (s *heapSink) Write(p []byte) (int, error) {
	s.watch.sample()
	s.n += int64(len(p))
	return len(p), nil
}

// TestHeapDoesNotGrowWithPayload is the promise of ARCHITECTURE.md.
func TestHeapDoesNotGrowWithPayload(t *testing.T) {
	const chars, allowed = 50 << 20, 4 << 20
	for name, opts := range map[string]SplitOptions{"client": {}, "tracker": {Tolerant: true}} {
		watch := newHeapWatch()
		opts.Dir = t.TempDir()
		source := &attachmentSource{watch: watch, head: `{"ids":[1],"data":"`, left: chars, tail: `","summary":"s"}`}
		length := int64(len(source.head) + chars + len(source.tail))
		skeleton, blobs, err := Split(nil, source, opts)
		if err != nil {
			t.Fatal(err)
		}
		joined, err := Join(skeleton, blobs)
		if err != nil {
			t.Fatal(err)
		}
		for _, reader := range []io.Reader{joined.Open(), struct{ io.Reader }{joined.Open()}} {
			sink := &heapSink{watch: watch}
			if n, err := io.Copy(sink, reader); err != nil || n != length || sink.n != length || joined.Len() != length {
				t.Errorf("%s: copied %d of %d, %v", name, n, length, err)
			}
		}
		if growth := watch.growth(); growth > allowed || watch.peak == 0 {
			t.Errorf("%s: the heap grew by %d bytes", name, growth)
		} else {
			t.Logf("%s: the heap grew by %d KiB at most", name, growth>>10)
		}
		if err := CloseBlobs(blobs); err != nil {
			t.Error(err)
		}
	}
}

// TestSplitAllocatesLittle: once buffers are warm, a payload costs the same few allocations whatever its size.
func TestSplitAllocatesLittle(t *testing.T) {
	skeleton := make([]byte, 0, 1<<10)
	counts := map[int]float64{}
	for _, chars := range []int{40 << 10, 4 << 20} {
		watch := &heapWatch{}
		counts[chars] = math.Inf(1)
		for range 5 { // the collector, and the race detector now and then, take pooled buffers away
			counts[chars] = min(counts[chars], testing.AllocsPerRun(1, func() {
				watch.calls = 0
				source := &attachmentSource{watch: watch, head: `{"data":"`, left: chars, tail: `"}`}
				_, blobs, err := Split(skeleton, source, SplitOptions{Limits: Limits{BlobMemory: -1}})
				if err != nil || blobs[0].EncodedLen() != int64(chars) {
					t.Fatal(err)
				}
				_ = CloseBlobs(blobs)
			}))
		}
	}
	if small, big := counts[40<<10], counts[4<<20]; big > small+2 || big > 40 {
		t.Errorf("%v allocations for a small payload, %v for a big one", small, big)
	}
}
