package jsonblob

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestSplitAllocatesLittle: once buffers are warm, a payload costs the same few allocations whatever its size. What that means for the heap of
// the program is shown in test/e2e.
func TestSplitAllocatesLittle(t *testing.T) {
	skeleton := make([]byte, 0, 1<<10)
	counts := map[int]float64{}
	for _, chars := range []int{40 << 10, 4 << 20} {
		text := `{"data":"` + strings.Repeat("QUJD", chars/4) + `"}`
		counts[chars] = math.Inf(1)
		for range 5 { // the collector, and the race detector now and then, take pooled buffers away
			counts[chars] = min(counts[chars], testing.AllocsPerRun(1, func() {
				_, blobs, err := Split(skeleton, strings.NewReader(text), SplitOptions{Limits: Limits{BlobMemory: -1}})
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

// TestMemoryOfTheSkeletonIsAskedFor before it is used, and not much more of it.
func TestMemoryOfTheSkeletonIsAskedFor(t *testing.T) {
	full := errors.New("full")
	for _, most := range []int{math.MaxInt, 50 << 10} {
		held := 0
		skeleton, _, err := Split(nil, strings.NewReader(`{"summary":"`+strings.Repeat("s", 100<<10)+`"}`), SplitOptions{Hold: func(n int) error {
			if held += n; held > most {
				return full
			}
			return nil
		}})
		if most == math.MaxInt && (err != nil || held < len(skeleton) || held > len(skeleton)+8<<10) || most < math.MaxInt && !errors.Is(err, full) {
			t.Errorf("asked for %d of %d bytes for %d: %v", held, most, len(skeleton), err)
		}
	}
}
