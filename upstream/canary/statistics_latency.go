package canary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The latency histograms: bounds from 0.1 ms to 120 s, each a tenth more than the one before.
const (
	firstBound = 100 * time.Microsecond
	lastBound  = 120 * time.Second
	bounds     = 148
)

var latencyBounds = makeLatencyBounds()

func makeLatencyBounds() []time.Duration {
	list := make([]time.Duration, bounds)
	growth := math.Pow(float64(lastBound)/float64(firstBound), 1.0/(bounds-1))
	for i := range list {
		list[i] = time.Duration(math.Round(float64(firstBound) * math.Pow(growth, float64(i))))
	}
	list[bounds-1] = lastBound
	return list
}

// LatencyBounds gives the upper bounds of the latency histograms' buckets, ascending.
// Bucket i counts what took at most bound i and more than bound i-1; one more
// bucket at the end counts what took longer than all of them.
func LatencyBounds() []time.Duration { return slices.Clone(latencyBounds) }

// LatencyBucket gives the bucket that counts a duration, from 0 to
// len(LatencyBounds()).
func LatencyBucket(took time.Duration) int {
	at, _ := slices.BinarySearch(latencyBounds, took)
	return at
}

// LatencyTarget says how much slower than the answering tracker the other may be.
// It is too slow when it is beyond both Ratio and Slack. The zero value means a
// ratio of 2 and a slack of 50 ms.
type LatencyTarget struct {
	// Ratio is how many times as long an answer may take; 0 means 2.
	Ratio float64 `json:"ratio"`
	// Slack is how much longer it may take whatever the ratio; beside a Ratio, 0 is none.
	Slack time.Duration `json:"slack"`
	// Least is how many answers of each there must be to tell; 0 means 100.
	Least int `json:"least"`
}

// Defaults of LatencyTarget.
const (
	defaultLatencyRatio = 2
	defaultLatencySlack = 50 * time.Millisecond
	defaultLatencyLeast = 100
)

func (t LatencyTarget) withDefaults() LatencyTarget {
	if t.Ratio <= 0 {
		t.Ratio, t.Slack = defaultLatencyRatio, cmp.Or(t.Slack, defaultLatencySlack)
	}
	if t.Least <= 0 {
		t.Least = defaultLatencyLeast
	}
	return t
}

// Quantiles are how long answers took to begin.
type Quantiles struct {
	P50 time.Duration `json:"p50"`
	P95 time.Duration `json:"p95"`
	P99 time.Duration `json:"p99"`
}

// QuantilesOf reads them from a histogram; without any answer they are 0. They are
// within a bucket's width of the true ones, and at most the last bound.
func QuantilesOf(histogram []int64) Quantiles {
	return Quantiles{P50: quantile(histogram, 0.5), P95: quantile(histogram, 0.95), P99: quantile(histogram, 0.99)}
}

// total is how many were counted.
func total(histogram []int64) int64 {
	var n int64
	for _, count := range histogram {
		n += count
	}
	return n
}

// quantile finds the bucket of a share of all, and the place in it as if its answers
// were spread evenly.
func quantile(histogram []int64, share float64) time.Duration {
	rank := share * float64(total(histogram))
	if rank == 0 {
		return 0
	}
	var below float64
	for i, count := range histogram {
		if here := float64(count); here > 0 && below+here >= rank {
			if i >= bounds {
				return lastBound
			}
			low, high := time.Duration(0), latencyBounds[i]
			if i > 0 {
				low = latencyBounds[i-1]
			}
			return low + time.Duration(float64(high-low)*(rank-below)/here)
		}
		below += float64(count)
	}
	return lastBound
}

// Slower gives the difference of ClassLatency when the histogram of the other
// tracker is beyond the target: at the median, or else at the 95th of a hundred,
// and there surely: of a hundred answers only five are slower, and whom a busy
// machine holds up is chance.
func (t LatencyTarget) Slower(answered, other []int64) (Difference, bool) {
	t = t.withDefaults()
	if least := int64(t.Least); total(answered) < least || total(other) < least {
		return Difference{}, false
	}
	one, two := QuantilesOf(answered), QuantilesOf(other)
	switch {
	case t.exceeded(one.P50, two.P50):
		return slower(pathMedian, one.P50, two.P50), true
	case t.exceeded(one.P95, two.P95) && t.exceeded(quantile(answered, highShare(.95, answered)), quantile(other, lowShare(.95, other))):
		return slower("latency.p95", one.P95, two.P95), true
	}
	return Difference{}, false
}

// lowShare and highShare are where the quantile of all answers lies that there would ever be, at 95 % confidence, as
// shares of those that were counted.
func lowShare(share float64, histogram []int64) float64 {
	return share - 1.96*math.Sqrt(share*(1-share)/float64(total(histogram)))
}

func highShare(share float64, histogram []int64) float64 {
	return min(1, 2*share-lowShare(share, histogram))
}

func (t LatencyTarget) exceeded(answered, other time.Duration) bool {
	return float64(other) > t.Ratio*float64(answered) && other > answered+t.Slack
}

// pathMedian is the path of a difference at the median.
const pathMedian = "latency.p50"

// slower is the difference, in milliseconds.
func slower(path string, answered, other time.Duration) Difference {
	return Difference{Class: ClassLatency, Path: path, Pointer: path, Want: milliseconds(answered), Have: milliseconds(other)}
}

func milliseconds(d time.Duration) jsontext.Value {
	return fmt.Appendf(nil, "%.1f", float64(d)/float64(time.Millisecond))
}

// ratio is how many times as long the other tracker took; 0 when unknown.
func (q Quantiles) ratio(other Quantiles) float64 {
	if q.P50 == 0 || other.P50 == 0 {
		return 0
	}
	return float64(other.P50) / float64(q.P50)
}
