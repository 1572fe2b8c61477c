package state

import (
	"strconv"
	"testing"
	"time"
)

func TestSamplesAreBounded(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
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
		for n, at := range []time.Time{noon, noon.Add(time.Minute), noon.Add(-time.Minute), noon.Add(time.Minute)} { // the latest are kept
			kept(Finding{Signature: "latest", Last: at}, []byte(strconv.Itoa(n)), 2)
		}
		_, latest, err := s.Finding(t.Context(), "latest")
		must(t, err)
		if len(latest) != 2 || string(latest[0].Text) != "3" || string(latest[1].Text) != "1" {
			t.Errorf("kept are %+v", latest)
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
