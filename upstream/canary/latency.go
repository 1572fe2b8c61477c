package canary

import (
	"time"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

// speedsLife is how long latencies are counted together. Slowness is then judged with new ones.
const speedsLife = 10 * time.Minute

// speeds are the latest latencies of an operation: those of all calls, of which
// clients made one of each pair, and those of pairs that the comparison made itself.
// On a busy machine it waits where clients do not, so that only pairs prove anything.
type speeds struct {
	began, reported  time.Time
	all, pairedCalls latencies
}

// latencies are histograms.
type latencies struct{ reference, candidate []int64 }

func (l *latencies) add(t responseTimes) {
	if t.known() {
		l.reference, l.candidate = verdict.CountLatency(l.reference, t.reference), verdict.CountLatency(l.candidate, t.candidate)
	}
}

// seemsSlow reports whether the candidate may be too slow, so that pairs
// have to prove it. They are made before there is enough to tell.
func (r *recorder) seemsSlow(about mapping.Operation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, t := r.speeds[about], r.canary.options.Latency.WithDefaults()
	if s == nil || verdict.Total(s.pairedCalls.candidate) >= int64(10*t.Least) {
		return false
	}
	t.Least = max(1, t.Least*2/5)
	_, seems := t.Slower(s.all.reference, s.all.candidate)
	return seems
}

// timed counts latencies and gives the difference when the candidate is too slow, once in a minute. At the median a fifth of
// the pairs is enough, since slowness was seen in the other calls already. The lock is held.
func (r *recorder) timed(j *job, now time.Time) (compare.Difference, bool) {
	s, t := r.speeds[j.operation], r.canary.options.Latency.WithDefaults()
	if s == nil || now.Sub(s.began) >= speedsLife {
		s = &speeds{began: now}
		r.speeds[j.operation] = s
	}
	s.all.add(j.observed)
	s.pairedCalls.add(j.pairedCalls)
	if _, seems := t.Slower(s.all.reference, s.all.candidate); !seems || now.Sub(s.reported) < time.Minute {
		return compare.Difference{}, false
	}
	few := t
	few.Least = max(1, t.Least/5)
	d, slower := few.Slower(s.pairedCalls.reference, s.pairedCalls.candidate)
	if d.Path != verdict.PathMedian {
		d, slower = t.Slower(s.pairedCalls.reference, s.pairedCalls.candidate)
	}
	if slower {
		s.reported = now
	}
	return d, slower
}
