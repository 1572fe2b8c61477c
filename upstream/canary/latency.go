package canary

import (
	"time"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

// minPairs is the number of pairs of calls that prove the candidate too slow, and maxPairs how many are made before it is believed to be
// fast.
const minPairs, maxPairs = 20, 1000

// speedsLife is how long latencies are counted together. Slowness is then judged with new ones.
const speedsLife = 10 * time.Minute

// speeds are the latest latencies of an operation: those of all calls, of which
// clients made one of each pair, and those of pairs that the comparison made itself.
// On a busy machine it waits where clients do not, so that only pairs prove anything.
type speeds struct {
	began            time.Time
	reported         bool // that the candidate is too slow
	all, pairedCalls latencies
}

// latencies are histograms.
type latencies struct{ reference, candidate []int64 }

func (l *latencies) add(t responseTimes) {
	if t.known() {
		l.reference, l.candidate = verdict.CountLatency(l.reference, t.reference), verdict.CountLatency(l.candidate, t.candidate)
	}
}

// seemsSlow reports whether the candidate may be too slow, so that pairs have to prove it.
func (r *recorder) seemsSlow(about mapping.Operation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.speeds[about]
	if s == nil || s.reported || verdict.Total(s.pairedCalls.candidate) > maxPairs {
		return false
	}
	_, seems := r.options.Latency.Slower(s.all.reference, s.all.candidate)
	return seems
}

// timed counts latencies and gives the difference once, when the candidate proves to be too slow. The lock is held.
func (r *recorder) timed(j *job) []compare.Difference {
	now := time.Now()
	s := r.speeds[j.operation]
	if s == nil || now.Sub(s.began) >= speedsLife {
		s = &speeds{began: now}
		r.speeds[j.operation] = s
	}
	s.all.add(j.observed)
	s.pairedCalls.add(j.pairedCalls)
	d, slower := r.options.Latency.Slower(s.pairedCalls.reference, s.pairedCalls.candidate)
	if s.reported || !slower {
		return nil
	}
	s.reported = true
	return []compare.Difference{d}
}
