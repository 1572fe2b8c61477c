package state

import (
	"context"
	"time"
)

// The kinds of losses.
const (
	// LossSkipped is an entry that an operator has left out.
	LossSkipped = "skipped"
	// LossMissed is a write that passed while the journal could not record it.
	LossMissed = "missed"
	// LossPassed is a write outside the seven operations.
	LossPassed = "passed"
	// LossUnrecorded is a write by a rule that does not replicate.
	LossUnrecorded = "unrecorded"
)

// JournalLoss counts writes of one kind that one tracker has and that are never copied to the receiver.
type JournalLoss struct {
	Receiver string `json:"receiver"`
	// Rule is the name of the rule that decided, empty for what passes through.
	Rule string `json:"rule,omitempty"`
	Kind string `json:"kind"`
	// What names the writes: an entry, an operation, or a method and the pattern of a path.
	What    string    `json:"what"`
	Entries int64     `json:"entries"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// AddJournalLosses adds to the counts of losses, at the times of the last ones, or takes from them what was no loss. Writes that came before the last
// start of the journal are copied with the data, and do not count.
func (s *Store) AddJournalLosses(ctx context.Context, losses []JournalLoss) error {
	return s.write(ctx, "counting writes that are not copied", func(tx *session) {
		// One process at a time, or they could wait for each other's rows for ever, and none while the journal is started.
		one[int](tx, "SELECT id FROM portico_journal_pause"+tx.forUpdate)
		started := one[int64](tx, "SELECT COALESCE(MAX(at), 0) FROM portico_audit WHERE action = ?", actionStart)
		for _, loss := range losses {
			if micros(loss.Last) > started {
				tx.addLoss(loss, loss.Last)
			}
		}
		tx.exec("DELETE FROM portico_journal_losses WHERE entries <= 0")
	})
}

func (s *session) addLoss(l JournalLoss, now time.Time) {
	s.exec(`INSERT INTO portico_journal_losses (receiver, rule, kind, what, entries, first_at, last_at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (receiver, rule, kind, what) DO UPDATE SET entries = portico_journal_losses.entries + excluded.entries, last_at = excluded.last_at`,
		l.Receiver, name(l.Rule), l.Kind, name(l.What), l.Entries, now, now)
}
