package canary

import (
	"time"

	"portico/upstream/state"
)

// concluded is a comparison that was made.
type concluded struct {
	subject
	began     time.Time
	confirmed []*found
	otherwise Outcome
	failed    bool
	took      took
}

// mostFresh bounds the comparisons that are not counted yet, each with its samples.
const mostFresh = 100

// compared counts a comparison that was made, with what was confirmed.
func (l *ledger) compared(j *job, confirmed []*found, otherwise Outcome) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.began.Before(l.since) || j.began.Before(l.anew[j.operation]) {
		return
	}
	if len(l.book.fresh) >= mostFresh {
		l.countFresh(now)
	}
	l.book.fresh = append(l.book.fresh, concluded{j.subject, j.began, confirmed, otherwise, j.failed, j.took})
	if l.book.held += len(confirmed); l.book.held > mostFindings {
		l.countFresh(now)
	}
	l.timed(j, now)
}

// countFresh counts what is fresh; the lock is held.
func (l *ledger) countFresh(now time.Time) {
	for _, c := range l.book.fresh {
		l.count(c, now)
	}
	l.book.fresh, l.book.held = nil, 0
}

func (l *ledger) count(c concluded, now time.Time) {
	t := l.tally(c.subject, now)
	outcome := c.otherwise
	if len(c.confirmed) > 0 {
		outcome = OutcomeAccepted
		t.Mismatch(signaturesOf(c.confirmed), 1)
	}
	for _, f := range c.confirmed {
		if !l.isAccepted(f.Signature, now) {
			outcome = OutcomeConfirmed
		}
		l.record(f)
	}
	t.Compared++
	*counterOf(t, outcome)++
	if c.failed && outcome == OutcomeTransient {
		t.Failed++
	}
	t.AnsweredLatency, t.OtherLatency = c.took.addTo(t.AnsweredLatency, t.OtherLatency)
}

func signaturesOf(list []*found) []string {
	signatures := make([]string, len(list))
	for i, f := range list {
		signatures[i] = f.Signature
	}
	return signatures
}

func counterOf(t *state.Tally, outcome Outcome) *int64 {
	switch outcome {
	case OutcomeNoisy:
		return &t.Noisy
	case OutcomeTransient:
		return &t.Transient
	case OutcomeAccepted:
		return &t.Accepted
	case OutcomeConfirmed:
		return &t.Confirmed
	default:
		return &t.Same
	}
}
