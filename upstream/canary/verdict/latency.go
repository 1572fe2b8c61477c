package verdict

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// The latency histograms have bounds from 0.1 ms to 120 s, each a tenth more than the one before.
const (
	firstBound = 100 * time.Microsecond
	lastBound  = 120 * time.Second
	bounds     = 148
)

// latencyBound is the upper bound of a bucket.
func latencyBound(bucket int) time.Duration {
	const growth = float64(lastBound) / float64(firstBound)
	return time.Duration(math.Round(float64(firstBound) * math.Pow(growth, float64(bucket)/(bounds-1))))
}

// CountLatency adds one latency to a histogram, which is nil at first. Bucket i counts latencies up to bound i that are
// longer than bound i-1; one more bucket at the end counts longer ones.
func CountLatency(histogram []int64, took time.Duration) []int64 {
	more := make([]int64, bounds+1)
	more[sort.Search(bounds, func(bucket int) bool { return took <= latencyBound(bucket) })] = 1
	return state.AddBuckets(histogram, more)
}

// Total is the number of latencies in a histogram.
func Total(histogram []int64) int64 {
	var n int64
	for _, count := range histogram {
		n += count
	}
	return n
}

// Quantiles are latencies until the response begins.
type Quantiles struct {
	P50 time.Duration `json:"p50"`
	P95 time.Duration `json:"p95"`
	P99 time.Duration `json:"p99"`
}

// quantilesOf estimates them within the width of a bucket. Those of an empty histogram are 0.
func quantilesOf(histogram []int64) Quantiles {
	return Quantiles{quantile(histogram, 0.5), quantile(histogram, 0.95), quantile(histogram, 0.99)}
}

// quantile interpolates within the bucket that has the given share of all latencies below its end.
func quantile(histogram []int64, share float64) time.Duration {
	rank, below := share*float64(Total(histogram)), 0.0
	low := time.Duration(0)
	if rank == 0 {
		return 0
	}
	for i, count := range histogram[:min(len(histogram), bounds)] {
		if here := float64(count); here > 0 && below+here >= rank {
			return low + time.Duration(float64(latencyBound(i)-low)*(rank-below)/here)
		}
		low, below = latencyBound(i), below+float64(count)
	}
	return low
}

// LatencyTarget says how much slower than the reference the candidate may be. It is too slow beyond both Ratio and Slack.
// The zero value allows twice the latency or 50 ms more.
type LatencyTarget struct {
	// Ratio is the allowed ratio of latencies; 0 means 2.
	Ratio float64 `json:"ratio" key:"ratio" default:"2" min:"1" max:"1000"`
	// Slack is the difference that is always allowed; beside a Ratio, 0 allows no difference.
	Slack time.Duration `json:"slack" key:"slack" default:"50ms" min:"0s"`
	// Least is the number of responses of each tracker that a judgement takes; 0 means 100.
	Least int `json:"least"`
}

// Slower gives the difference of ClassLatency when the candidate is beyond the target: at the median, or else at the 95th
// percentile, and there with 95 % confidence, since a busy machine delays a few calls by chance.
func (t LatencyTarget) Slower(reference, candidate []int64) (compare.Difference, bool) {
	if t.Ratio <= 0 {
		t.Ratio, t.Slack = 2, cmp.Or(t.Slack, 50*time.Millisecond)
	}
	if least := int64(cmp.Or(t.Least, 100)); min(Total(reference), Total(candidate)) < least {
		return compare.Difference{}, false
	}
	margin := func(histogram []int64) float64 { return 1.96 * math.Sqrt(.95*.05/float64(Total(histogram))) }
	one, two := quantilesOf(reference), quantilesOf(candidate)
	switch {
	case t.exceeded(one.P50, two.P50):
		return slower("latency.p50", one.P50, two.P50), true
	case t.exceeded(one.P95, two.P95) &&
		t.exceeded(quantile(reference, min(1, .95+margin(reference))), quantile(candidate, .95-margin(candidate))):
		return slower("latency.p95", one.P95, two.P95), true
	}
	return compare.Difference{}, false
}

func (t LatencyTarget) exceeded(reference, candidate time.Duration) bool {
	return float64(candidate) > t.Ratio*float64(reference) && candidate > reference+t.Slack
}

// slower is the difference, in milliseconds.
func slower(path string, reference, candidate time.Duration) compare.Difference {
	milliseconds := func(d time.Duration) jsontext.Value { return fmt.Appendf(nil, "%.1f", d.Seconds()*1000) }
	return compare.Difference{Class: compare.ClassLatency, Path: path, Pointer: path, Want: milliseconds(reference), Have: milliseconds(candidate)}
}
