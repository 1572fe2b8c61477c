package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// wobbly makes samples of a figure that begins at 1000, jumps by up to jump and gains growth in all.
func wobbly(n int, jump, growth float64) (at, figures []float64) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		at = append(at, float64(10*i))
		figures = append(figures, 1000+jump*(2*random.Float64()-1)+growth*float64(i)/float64(n-1))
	}
	return at, figures
}

func TestTrend(t *testing.T) {
	for name, tt := range map[string]struct {
		n            int
		jump, growth float64
		flat         bool
	}{
		"still":                 {150, 0, 0, true},
		"noisy":                 {150, 200, 0, true},
		"shrinks":               {150, 50, -300, true},
		"grows a little":        {150, 10, 30, true},
		"grows":                 {150, 10, 100, false},
		"grows behind noise":    {150, 200, 200, false},
		"too few to tell":       {2, 0, 0, false},
		"grows within a minute": {8, 5, 150, false},
	} {
		if got := trendOf(wobbly(tt.n, tt.jump, tt.growth)); got.flat(20) != tt.flat {
			t.Errorf("%s: %+v is flat: %v", name, got, !tt.flat)
		}
	}
}

func TestSettled(t *testing.T) {
	var samples []sample
	for i := range 18 {
		samples = append(samples, sample{at: time.Duration(i+1) * 10 * time.Second})
	}
	if got := settled(samples); len(got) != 16 || got[0].at != 30*time.Second {
		t.Errorf("%d samples from %v", len(got), got[0].at)
	}
	if got := settled(samples[:2]); got != nil {
		t.Errorf("%v", got)
	}
}
