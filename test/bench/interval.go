package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// resamples is how often turns are drawn again for an interval.
const resamples = 1000

// interval is where a figure lies in 19 of 20 cases.
type interval struct{ low, high float64 }

func (i interval) String() string { return fmt.Sprintf("%.2f to %.2f", i.low, i.high) }

// ratioBetween tells how certain the ratio of two quantiles is. Whole turns are drawn, since what disturbs one read
// disturbs its neighbours.
func ratioBetween(over, under [][]float64, share float64) interval {
	random := rand.New(rand.NewPCG(1, 2))
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = quantile(drawn(random, over), share) / quantile(drawn(random, under), share)
	}
	return interval{percentile(ratios, .025), percentile(ratios, .975)}
}

// drawn gives as many turns, each one of these.
func drawn(random *rand.Rand, turns [][]float64) [][]float64 {
	again := make([][]float64, len(turns))
	for i := range again {
		again[i] = turns[random.IntN(len(turns))]
	}
	return again
}

// quantile is that of all turns together.
func quantile(turns [][]float64, share float64) float64 {
	return percentile(slices.Concat(turns...), share)
}
