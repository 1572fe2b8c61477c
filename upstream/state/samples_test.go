package state

import (
	"fmt"
	"strconv"
	"testing"
)

func TestSamplesAreBounded(t *testing.T) {
	onEvery(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		kept := func(f Finding, sample []byte, keep int) int {
			t.Helper()
			must(t, s.RecordFinding(t.Context(), f, sample, keep))
			found, samples, err := s.Finding(t.Context(), f.Signature)
			must(t, err)
			if found.Samples != len(samples) {
				t.Errorf("there are %d samples, the finding says %d", len(samples), found.Samples)
			}
			return len(samples)
		}
		for i := range 20 {
			for signature, keep := range map[string]int{"three": 3, "none": 0, "negative": -1} {
				want := min(i+1, max(keep, 0))
				if got := kept(Finding{Signature: signature}, []byte(strconv.Itoa(i)), keep); got != want {
					t.Fatalf("after %d of %s there are %d, want %d", i+1, signature, got, want)
				}
			}
		}
		if got := kept(Finding{Signature: "three"}, nil, 1); got != 3 {
			t.Errorf("nothing was offered, and %d are kept", got)
		}
		if got := kept(Finding{Signature: "three"}, []byte("20"), 2); got != 2 {
			t.Errorf("with a smaller bound %d are kept", got)
		}
		if got := kept(Finding{Signature: "three"}, []byte("21"), 0); got != 0 {
			t.Errorf("with none wanted %d are kept", got)
		}
	})
}

func TestSamplesAreEquallyLikely(t *testing.T) {
	const findings, offered, keep = 150, 16, 4
	s := open(t, newDatabase(t))
	for i := range findings {
		for n := range offered {
			must(t, s.RecordFinding(t.Context(), Finding{Signature: fmt.Sprint("f", i), Count: 7}, []byte{byte(n)}, keep))
		}
	}
	var times [offered]int
	for i := range findings {
		_, samples, err := s.Finding(t.Context(), fmt.Sprint("f", i))
		must(t, err)
		for _, sample := range samples {
			times[sample.Text[0]]++
		}
	}
	// Each stays in a quarter of 150 findings. The margin is more than five standard
	// deviations.
	for n, got := range times {
		if got < 38-29 || got > 38+29 {
			t.Errorf("the sample number %d was kept %d times, want about 38: %v", n, got, times)
		}
	}
}
