package canary

import (
	"context"
	"encoding/json"
	"time"

	"portico/upstream/state"
)

// took is how long both trackers needed to begin their answers to one call. Both
// are known or neither counts, since only then the histograms can be compared.
type took struct{ answered, other time.Duration }

func (t took) known() bool { return t.answered > 0 && t.other > 0 }

// addTo counts both. The histograms are those of one tally, nil at first.
func (t took) addTo(answered, other []int64) (moreAnswered, moreOther []int64) {
	if !t.known() {
		return answered, other
	}
	return addDuration(answered, t.answered), addDuration(other, t.other)
}

func addDuration(histogram []int64, d time.Duration) []int64 {
	if histogram == nil {
		histogram = make([]int64, len(LatencyBounds())+1)
	}
	histogram[LatencyBucket(d)]++
	return histogram
}

// sumHistograms adds them up; their lengths may differ.
func sumHistograms(sum, more []int64) []int64 {
	if len(sum) < len(more) {
		sum = append(sum, make([]int64, len(more)-len(sum))...)
	}
	for i, n := range more {
		sum[i] += n
	}
	return sum
}

// speedsLife is how long answers are counted together before slowness is judged
// anew.
const speedsLife = 10 * time.Minute

// speeds are the latest latencies of an operation: those of all calls, of which
// clients made one of each pair, and those of pairs that the comparison made itself.
// On a busy machine it waits where clients do not, so that only pairs prove anything.
type speeds struct {
	began                         time.Time
	reference, others             []int64
	pairedReference, pairedOthers []int64
	told                          time.Time
}

// pair is how long both took when the comparison asked them, one right after the other.
func (c *Canary) pair(ctx context.Context, j *job, reference time.Duration) took {
	if !j.answeredByCandidate {
		return took{reference, j.took.other}
	}
	second := c.ask(ctx, j, j.candidate, j.second.Digest != nil)
	return took{reference, second.took}
}

// slower judges the latencies. At the median a fifth of the answers is enough of
// pairs, since slowness was seen in the others already.
func (s *speeds) slower(t LatencyTarget) (Difference, bool) {
	t = t.withDefaults()
	if _, seems := t.Slower(s.reference, s.others); !seems {
		return Difference{}, false
	}
	few := t
	few.Least = max(1, t.Least/5)
	d, slower := few.Slower(s.pairedReference, s.pairedOthers)
	if slower && d.Path != pathMedian {
		return t.Slower(s.pairedReference, s.pairedOthers)
	}
	return d, slower
}

// seemsSlow tells whether the candidate may be slower than it may be, so that pairs
// have to prove it. They are made before there is enough to tell.
func (l *ledger) seemsSlow(about subject) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, t := l.speeds[about], l.latency.withDefaults()
	if s == nil || total(s.pairedOthers) >= int64(10*t.Least) {
		return false
	}
	t.Least = max(1, t.Least*2/5)
	_, seems := t.Slower(s.reference, s.others)
	return seems
}

// timed looks whether the candidate is slower than it may be; the lock is held. A
// finding is counted once in a minute, however many calls there are.
func (l *ledger) timed(j *job, now time.Time) {
	if !j.took.known() {
		return
	}
	s := l.speeds[j.subject]
	if s == nil || now.Sub(s.began) >= speedsLife {
		told := time.Time{}
		if s != nil {
			told = s.told
		}
		s = &speeds{began: now, told: told}
		l.speeds[j.subject] = s
	}
	s.reference, s.others = j.took.addTo(s.reference, s.others)
	s.pairedReference, s.pairedOthers = j.paired.addTo(s.pairedReference, s.pairedOthers)
	if now.Sub(s.told) < time.Minute {
		return
	}
	if d, slower := s.slower(l.latency); slower {
		s.told = now
		l.record(slowness(j, d, now))
	}
}

// slowness makes the finding. Its sample is the call at which it was noticed, with the
// times of all.
func slowness(j *job, d Difference, now time.Time) *found {
	method, target := j.call.Line()
	sample, err := json.Marshal(SampleText{
		Method: method, Target: target[:min(len(target), longestTarget)], AnsweredStatus: j.first.Status, OtherStatus: j.second.Status,
		Differences: []SampleDifference{{Class: d.Class, Path: d.Path, Pointer: d.Pointer, Want: d.Want, Have: d.Have}},
	})
	if err != nil {
		sample = nil // it is numbers only
	}
	return &found{sample: sample, Finding: state.Finding{
		Signature: d.Signature(j.operation), Operation: j.operation, Class: string(d.Class), Path: d.Path, Kind: kindLatency,
		Count: 1, First: now.UTC(), Last: now.UTC(), Note: "The candidate takes longer to answer than it may.",
	}}
}
