package canary

import "time"

// LatencyBounds gives the upper bounds of the latency histograms' buckets, ascending.
// Bucket i counts what took at most bound i and more than bound i-1; one more
// bucket at the end counts what took longer than all of them.
func LatencyBounds() []time.Duration { return nil }

// LatencyBucket gives the bucket that counts a duration, from 0 to
// len(LatencyBounds()).
func LatencyBucket(took time.Duration) int { return 0 }

// LatencyTarget says how much slower than the answering tracker the other may be.
type LatencyTarget struct {
	// Ratio is how many times as long an answer may take.
	Ratio float64 `json:"ratio"`
	// Slack is how much longer it may take whatever the ratio.
	Slack time.Duration `json:"slack"`
	// Least is how many answers of each there must be to tell.
	Least int `json:"least"`
}

// Quantiles are how long answers took to begin.
type Quantiles struct {
	P50 time.Duration `json:"p50"`
	P95 time.Duration `json:"p95"`
	P99 time.Duration `json:"p99"`
}

// QuantilesOf reads them from a histogram; without any answer they are 0.
func QuantilesOf(histogram []int64) Quantiles { return Quantiles{} }

// Slower gives the difference of ClassLatency when the histogram of the other
// tracker is beyond the target.
func (t LatencyTarget) Slower(answered, other []int64) (Difference, bool) {
	return Difference{}, false
}
