package state

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelled is what a finding must be, told in the words of the contract.
type modelled struct {
	count                int64
	last, changed, until time.Time
	status               FindingStatus
}

// now is what people see at a time.
func (m modelled) now(at time.Time) FindingStatus {
	if m.over(at) {
		return StatusOpen
	}
	return m.status
}

// over tells whether it was accepted for a time that is over.
func (m modelled) over(at time.Time) bool {
	return m.status == StatusAccepted && !m.until.IsZero() && !at.Before(m.until)
}

func (m modelled) seen(more int64, at time.Time) modelled {
	again := m.status == StatusFixed && !at.Before(m.changed) || m.over(at)
	if m.count == 0 || again {
		m.status, m.changed = StatusOpen, at
	}
	m.count += more
	if at.After(m.last) {
		m.last = at
	}
	return m
}

// lives are the findings of a Store and what they must be.
type lives struct {
	store *Store
	clock *clock
	model map[string]modelled
}

func (l lives) signature(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "signature")
}

// halfHours makes it likely that two things fall together.
func halfHours(t *rapid.T, most int, what string) time.Duration {
	return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * 30 * time.Minute
}

func (l lives) pass(t *rapid.T) {
	l.clock.pass(halfHours(t, 3, "passed"))
}

func (l lives) record(t *rapid.T) {
	signature, more := l.signature(t), rapid.Int64Range(1, 5).Draw(t, "count")
	at := l.clock.now().Add(halfHours(t, 2, "ahead") - 30*time.Minute) // clocks of processes differ
	if err := l.store.RecordFinding(t.Context(), Finding{Signature: signature, Count: more, Last: at}, nil, 0); err != nil {
		t.Fatal(err)
	}
	l.model[signature] = l.model[signature].seen(more, at)
}

func (l lives) judge(t *rapid.T) {
	signature := l.signature(t)
	status := rapid.SampledFrom([]FindingStatus{StatusOpen, StatusAccepted, StatusFixed}).Draw(t, "status")
	until := time.Time{}
	if some := halfHours(t, 4, "until"); some > 0 {
		until = l.clock.now().Add(some)
	}
	err := l.store.Judge(t.Context(), signature, status, "ada", "why", until)
	m, known := l.model[signature]
	if !known {
		if !errors.Is(err, ErrNotFound) {
			t.Fatalf("judging what was never seen: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.status, m.changed, m.until = status, l.clock.now(), time.Time{}
	if status == StatusAccepted {
		m.until = until
	}
	l.model[signature] = m
}

func (l lives) reset(t *rapid.T) {
	if err := l.store.StartCampaign(t.Context(), "ada", "again"); err != nil {
		t.Fatal(err)
	}
	clear(l.model)
}

// check compares all findings with the model.
func (l lives) check(t *rapid.T) {
	all, err := l.store.Findings(t.Context())
	if err != nil || len(all) != len(l.model) {
		t.Fatalf("there are %d findings, want %d: %v", len(all), len(l.model), err)
	}
	now := l.clock.now()
	for _, f := range all {
		m := l.model[f.Signature]
		changed := m.changed
		if m.over(now) {
			changed = m.until
		}
		if f.Status != m.now(now) || f.Count != m.count || !f.Last.Equal(m.last) || !f.Changed.Equal(changed) {
			t.Fatalf("at %v\ngot  %+v\nwant %+v", now, f, m)
		}
	}
}

func TestLivesOfFindings(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		rapid.Check(t, func(t *rapid.T) {
			l := lives{store: s, clock: newClock(s), model: map[string]modelled{}}
			l.reset(t)
			t.Repeat(map[string]func(*rapid.T){"": l.check, "pass": l.pass, "record": l.record, "see": l.record, "judge": l.judge, "reset": l.reset})
		})
	})
}
