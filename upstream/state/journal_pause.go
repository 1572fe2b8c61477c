package state

import (
	"context"
	"time"
)

// What the audit trail calls a start of the journal, and the end of the pause after it.
const (
	actionStart  = "start the journal"
	actionResume = "resume the journal"
)

// notPaused is true while copies are made.
const notPaused = "NOT EXISTS (SELECT 1 FROM portico_journal_pause WHERE paused = 1)"

// StartJournal pauses copying in all processes and forgets the losses, since the data are copied anew.
func (s *Store) StartJournal(ctx context.Context, record Record) error {
	record.Subject, record.Action = "journal", actionStart
	return s.record(ctx, "starting the journal", record, func(tx *session) {
		tx.exec("UPDATE portico_journal_pause SET paused = 1 WHERE id = 1")
		tx.exec("DELETE FROM portico_journal_losses")
	})
}

// ResumeJournal has copying go on in all processes. After a kill, copies that it has stopped are parked first.
func (s *Store) ResumeJournal(ctx context.Context, record Record) error {
	record.Subject, record.Action = "journal", actionResume
	return s.record(ctx, "resuming the journal", record, func(tx *session) {
		tx.parkKilled()
		tx.exec("UPDATE portico_journal_pause SET paused = 0 WHERE id = 1")
	})
}

// KillJournal pauses copying because all writes go to a tracker from now on. Another call for the same tracker changes nothing.
func (s *Store) KillJournal(ctx context.Context, tracker string, record Record) error {
	record.At, record.Subject = s.now(), "journal"
	return s.write(ctx, "pausing the journal", func(tx *session) {
		if tx.exec("UPDATE portico_journal_pause SET paused = 1, killed_to = ? WHERE id = 1 AND NOT (paused = 1 AND killed_to = ?)", tracker, tracker) > 0 {
			tx.addRecord(record)
		}
	})
}

// ParkKilled parks what a kill has kept from being copied, when the kill is over.
func (s *Store) ParkKilled(ctx context.Context) error {
	return s.write(ctx, "parking what a kill has stopped", (*session).parkKilled)
}

// parkKilled parks the copies to the tracker that a kill has sent all writes to.
func (s *session) parkKilled() {
	s.exec(`UPDATE portico_journal SET status = 'parked', reason = ? WHERE status <> 'parked' AND `+unfinished+`
		AND receiver = (SELECT killed_to FROM portico_journal_pause WHERE id = 1)`,
		"the kill switch has sent later writes to the tracker that was to get this copy: compare both trackers, then retry or skip it")
	s.exec("UPDATE portico_journal_pause SET killed_to = '' WHERE id = 1")
}

// JournalWaited reports whether what waited at a time to be copied has waited for the data to be copied: from then on, until copying was resumed.
func (s *Store) JournalWaited(ctx context.Context, at time.Time) (bool, error) {
	return readOne[bool](ctx, s, "reading the audit trail", `SELECT EXISTS (SELECT 1 FROM portico_audit s WHERE s.action = ?
		AND NOT EXISTS (SELECT 1 FROM portico_audit r WHERE r.action = ? AND r.id > s.id AND r.at <= ?))`, actionStart, actionResume, at)
}
