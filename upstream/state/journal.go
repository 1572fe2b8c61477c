package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"portico/mapping"
)

// JournalStatus says how far a journalled write has come.
type JournalStatus string

// The statuses of a journalled write. The first three are not finished, and hold up what follows in the lane.
const (
	// JournalBegun is an intent: the outcome at the target is not known.
	JournalBegun JournalStatus = "begun"
	// JournalPending was carried out at the target and not yet at the receiver.
	JournalPending JournalStatus = "pending"
	// JournalParked waits for an operator.
	JournalParked JournalStatus = "parked"
	// JournalApplied was carried out at both trackers.
	JournalApplied JournalStatus = "applied"
	// JournalRefused was carried out at neither.
	JournalRefused JournalStatus = "refused"
	// JournalSkipped is left out by an operator.
	JournalSkipped JournalStatus = "skipped"
)

// unfinished selects what is not finished. It has the words of an index, so that this is used where a narrower condition stands beside it.
const unfinished = "status IN ('begun', 'pending', 'parked')"

// Finished reports whether nothing remains to be done.
func (s JournalStatus) Finished() bool {
	return s == JournalApplied || s == JournalRefused || s == JournalSkipped
}

// JournalEntry is a write of one object that is copied from one tracker to another.
type JournalEntry struct {
	// Seq orders the entries of a lane.
	Seq int64 `json:"seq"`
	// Lane names the object: "attachment ID", "bug ID" for its new attachments, or "flag types". Made is the lane of the object that a create has made, empty for others.
	Lane      string            `json:"lane"`
	Made      string            `json:"made,omitempty"`
	Operation mapping.Operation `json:"operation"`
	// Target is the tracker that the client's request went to, Receiver the one that it is copied to.
	Target   string `json:"target"`
	Receiver string `json:"receiver"`
	Rule     string `json:"rule"`
	// Caller is the label of the caller, never a credential.
	Caller string        `json:"caller"`
	Status JournalStatus `json:"status"`
	Reason string        `json:"reason,omitempty"`
	// Attempts counts failures at the receiver. Next is when the next attempt is due.
	Attempts int       `json:"attempts"`
	Next     time.Time `json:"next,omitzero"`
	Begun    time.Time `json:"begun"`
	Ended    time.Time `json:"ended,omitzero"`
	// Request is the encrypted request, Spool the file with a large content. Both are empty once the entry is finished.
	Request []byte `json:"-"`
	Spool   string `json:"-"`
	// Attempt describes an attempt whose outcome is not known, nil without one. It holds no content.
	Attempt []byte `json:"-"`
}

// selectEntries reads everything about entries; a condition follows.
const selectEntries = `SELECT seq, lane, made, operation, target, receiver, rule, caller, status, reason, attempts,
	next_at, begun_at, ended_at, request, spool, attempt FROM portico_journal j WHERE `

// entries returns the first entries that a condition with an order selects. With the limit as a parameter SQLite would parse the statement each time.
func (s *Store) entries(ctx context.Context, limit int, where string, args ...any) ([]JournalEntry, error) {
	return read[JournalEntry](ctx, s, "reading the journal", fmt.Sprint(selectEntries, where, " LIMIT ", limit), args...)
}

func writeLease(lane string) string { return "write " + lane }

// WriteLeases names the leases for writing the objects of entries.
func WriteLeases(entries []JournalEntry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, writeLease(e.Lane))
	}
	slices.Sort(names) // two writes of the same objects do not wait for each other crosswise
	return slices.Compact(names)
}

// uncopied selects whether a tracker has still to get copies of a lane or of the object itself: apart, so that SQLite uses an index for each.
// Those that a kill has stopped do not count.
const uncopied = "SELECT (EXISTS (" + waiting + "lane = ?) OR EXISTS (" + waiting + `made <> '' AND made = ?))
	AND NOT EXISTS (SELECT 1 FROM portico_journal_pause WHERE killed_to = ?)`

const waiting = "SELECT 1 FROM portico_journal WHERE " + unfinished + " AND status <> 'parked' AND receiver = ? AND "

// BeginJournal commits the intents of one write and takes the leases of its lanes. It returns false while another holder has one of
// them, and while the target has still to get the attachment of an update, or a copy of an earlier one, which would overwrite it: rules do not move a
// write before, but the bug of an attachment may move to another product. The entries get their numbers.
func (s *Store) BeginJournal(ctx context.Context, holder string, lasts time.Duration, entries []JournalEntry) (taken bool, err error) {
	err = s.share(ctx, "beginning a journalled write", func(tx *session) {
		tx.take(WriteLeases(entries), holder, lasts)
		for i := range entries {
			e := &entries[i]
			e.Status, e.Begun, e.Lane = JournalBegun, fromMicros(micros(s.now())), name(e.Lane)
			if e.Operation == mapping.OpUpdateAttachments && one[bool](tx, uncopied, e.Target, e.Lane, e.Target, e.Lane, e.Target) {
				tx.fail(errHeld)
			}
			e.Seq = one[int64](tx, `INSERT INTO portico_journal (lane, operation, target, receiver, rule, caller, status, begun_at, request, spool)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
				e.Lane, e.Operation, e.Target, e.Receiver, e.Rule, e.Caller, e.Status, e.Begun, e.Request, e.Spool)
		}
	})
	return held(err)
}

// held reports whether all leases were taken. Another holder's lease is no error.
func held(err error) (bool, error) {
	if errors.Is(err, errHeld) {
		return false, nil
	}
	return err == nil, err
}

// unknownHolder has the leases of updates whose outcome is unknown.
const unknownHolder = ""

// EndJournal commits the outcome of a write and gives the leases of its lanes back. Entries that are no longer begun stay as they are. An update
// whose outcome is unknown may still be carried out, and undo one that comes later: its lane stays held until its next time. What a tracker has
// refused leaves nothing, or a client with an invalid key could fill the store. ErrNotFound says that the store has lost an
// entry. It may have given the number to another one since.
func (s *Store) EndJournal(ctx context.Context, holder string, entries []JournalEntry) error {
	return s.share(ctx, "ending a journalled write", func(tx *session) {
		now := s.now()
		for i := range entries {
			e := &entries[i]
			if tx.putEntry(e, JournalBegun, now) == 0 {
				one[int64](tx, "SELECT seq FROM portico_journal WHERE seq = ? AND lane = ?", e.Seq, e.Lane) // fails for a lost one
			}
			if e.Status == JournalRefused && e.Reason == "" {
				tx.exec("DELETE FROM portico_journal WHERE seq = ? AND status = ?", e.Seq, e.Status)
			}
			if e.Status == JournalBegun && !e.Operation.IsCreate() {
				tx.hold(writeLease(e.Lane), holder, unknownHolder, e.Next.Sub(now))
			}
		}
		tx.release(WriteLeases(entries), holder)
	})
}

// putEntry stores what may change of an entry, if its status is still the given one.
func (s *session) putEntry(e *JournalEntry, from JournalStatus, now time.Time) (changed int64) {
	if e.Status.Finished() {
		e.Ended, e.Request, e.Spool, e.Attempt = now, nil, "", nil
	}
	return s.exec(`UPDATE portico_journal SET made = ?, status = ?, reason = ?, attempts = ?, next_at = ?, ended_at = ?, request = ?, spool = ?, attempt = ?
		WHERE seq = ? AND lane = ? AND status = ?`,
		name(e.Made), e.Status, e.Reason, e.Attempts, e.Next, e.Ended, e.Request, e.Spool, e.Attempt, e.Seq, e.Lane, from)
}

// OvertakenError says that the receiver of a parked update has got a later write of its object since. Its bug has moved to another product, or
// the rules have gone on without it.
type OvertakenError struct {
	// By is the number of the later write.
	By int64
}

// Error implements error.
func (e *OvertakenError) Error() string { return fmt.Sprintf("entry %d is a later write", e.By) }

// PutJournal stores what has changed of an entry whose status was from, except for its attempt. With an action it leaves an audit record. ErrNotFound says that the
// entry has another status by now, an *OvertakenError that a parked update would overwrite a later one if it were copied.
func (s *Store) PutJournal(ctx context.Context, e JournalEntry, from JournalStatus, record Record) error {
	record.Subject = fmt.Sprintf("entry %d (%s)", e.Seq, e.Lane)
	return s.record(ctx, "changing an entry of the journal", record, func(tx *session) {
		// An attempt may have begun since e was read.
		e.Attempt = one[[]byte](tx, "SELECT attempt FROM portico_journal WHERE seq = ?"+tx.forUpdate, e.Seq)
		if from == JournalParked && e.Status == JournalPending && e.Operation == mapping.OpUpdateAttachments {
			for _, later := range list[int64](tx, "SELECT seq FROM portico_journal WHERE lane = ? AND seq > ? AND target = ? AND status <> 'refused' LIMIT 1", e.Lane, e.Seq, e.Receiver) {
				tx.fail(&OvertakenError{later})
			}
		}
		if tx.putEntry(&e, from, s.now()) == 0 {
			tx.fail(ErrNotFound)
		}
		if e.Status == JournalSkipped {
			tx.addLoss(JournalLoss{
				Receiver: e.Receiver, Rule: e.Rule, Kind: LossSkipped, Entries: 1, What: fmt.Sprintf("entry %d: %s of %s", e.Seq, e.Operation, e.Lane),
			}, s.now())
		}
	})
}

// DueJournal returns the first unfinished entry of each lane that is due and not parked, of some lanes or of all. It leaves out those whose object an
// unfinished create has still to make, and intents of writes under way. While copying is paused there is none.
func (s *Store) DueJournal(ctx context.Context, limit int, lanes ...string) ([]JournalEntry, error) {
	first := "SELECT MIN(seq) FROM portico_journal WHERE " + unfinished + " GROUP BY lane"
	if len(lanes) > 0 {
		first = "SELECT (SELECT MIN(seq) FROM portico_journal WHERE " + unfinished + " AND lane = column1) FROM (VALUES " + repeated("(?)", len(lanes)) + ") AS lanes"
	}
	return s.entries(ctx, limit, "seq IN ("+first+`) AND status <> 'parked' AND next_at <= ? AND `+notPaused+`
		AND NOT EXISTS (SELECT 1 FROM portico_journal m WHERE m.made <> '' AND m.made = j.lane AND m.`+unfinished+`)
		AND (status <> 'begun' OR NOT EXISTS (SELECT 1 FROM portico_leases l WHERE l.name = 'write ' || j.lane AND l.until_at > `+s.dialect.clock+`))
		ORDER BY seq`, append(nameArgs(lanes), s.now())...)
}

// nameArgs are names as parameters.
func nameArgs(names []string) (all []any) {
	for _, each := range names {
		all = append(all, name(each))
	}
	return all
}

// CopyLeases names the leases that copying an entry needs. What a write makes meanwhile could be taken for what an unknown outcome has made.
func CopyLeases(e JournalEntry) []string {
	leases := []string{"copy " + e.Lane}
	if e.Status == JournalBegun {
		leases = append(leases, writeLease(e.Lane))
	}
	return leases
}

// BeginCopy takes the leases for copying an entry and commits its attempt, if it has one. It returns false while another holder has a
// lease or copying is paused, and where the entry is no longer as the caller has read it.
func (s *Store) BeginCopy(ctx context.Context, holder string, lasts time.Duration, e JournalEntry) (begun bool, err error) {
	err = s.share(ctx, "beginning a copy", func(tx *session) {
		tx.take(CopyLeases(e), holder, lasts)
		if tx.exec(`UPDATE portico_journal SET attempt = ? WHERE seq = ? AND status = ? AND next_at = ? AND (attempt IS NULL OR attempt = ?)
			AND `+notPaused, e.Attempt, e.Seq, e.Status, e.Next, e.Attempt) == 0 {
			tx.fail(errHeld)
		}
	})
	return held(err)
}

// EndCopy commits what has become of an entry after BeginCopy with from, and the ids that were learned, and gives the leases back.
// The error is an *IDConflictError where one of the ids contradicts a kept one. Nothing changes if another process has got the leases.
func (s *Store) EndCopy(ctx context.Context, holder string, from, e JournalEntry, ids []IDPair) error {
	return s.share(ctx, "ending a copy", func(tx *session) {
		tx.addIDs(ids)
		if tx.putEntry(&e, from.Status, s.now()) == 0 && e.Status.Finished() {
			tx.putEntry(&e, JournalParked, s.now()) // it was parked under way, and a retry would make it twice
		}
		if !tx.release(CopyLeases(from), holder) {
			tx.fail(errHeld)
		}
	})
}

// JournalOf returns the entries that are not finished, or all, the oldest first.
func (s *Store) JournalOf(ctx context.Context, limit int, all bool) ([]JournalEntry, error) {
	where := unfinished
	if all {
		where = "1 = 1"
	}
	return s.entries(ctx, limit, where+" ORDER BY seq")
}

// JournalUncopied returns the unfinished entries of a caller or, where there are any, of the creates that have made the objects of lanes: the last ones
// up to a limit, the oldest first.
func (s *Store) JournalUncopied(ctx context.Context, limit int, caller string, made ...string) ([]JournalEntry, error) {
	where, args := "caller = ?", []any{caller}
	if len(made) > 0 {
		where, args = "made <> '' AND made IN ("+repeated("?", len(made))+")", nameArgs(made)
	}
	all, err := s.entries(ctx, limit, unfinished+" AND "+where+" ORDER BY seq DESC", args...)
	slices.Reverse(all)
	return all, err
}

// JournalEntry returns one entry, or ErrNotFound.
func (s *Store) JournalEntry(ctx context.Context, seq int64) (JournalEntry, error) {
	return readOne[JournalEntry](ctx, s, "reading the journal", selectEntries+"seq = ?", seq)
}

// JournalCount is how many unfinished entries a rule, a receiver and a status have.
type JournalCount struct {
	Rule     string `json:"rule"`
	Receiver string `json:"receiver"`
	// Status is JournalPending for writes under way too, whose process has their lease. JournalBegun is an unknown outcome.
	Status JournalStatus `json:"status"`
	// Blocked says that they wait behind a parked entry of their object.
	Blocked bool  `json:"blocked,omitempty"`
	Entries int64 `json:"entries"`
	// Lanes is how many lanes they are in. A parked lane counts only where its first parked entry does.
	Lanes int64 `json:"lanes"`
	// Oldest is when the first of them was begun.
	Oldest time.Time `json:"oldest"`
}

// JournalOverview is what waits in the journal, what has stopped and what is lost.
type JournalOverview struct {
	Paused bool
	// Counts are the unfinished entries by rule, receiver and status.
	Counts []JournalCount
	// Stopped are entries that are parked or have an unknown outcome, the oldest first.
	Stopped []JournalEntry
	// Losses are those since the last start of the journal, the latest first.
	Losses []JournalLoss
	// Applied is how many entries were copied in the last minute.
	Applied int64
}

// JournalOverview reads an overview, with up to a number of entries that have stopped, and of losses for each rule and receiver, so that those of one
// rule hide none of another.
func (s *Store) JournalOverview(ctx context.Context, limit int) (o JournalOverview, err error) {
	in := s.session(ctx)
	underWay := "(j.status = 'begun' AND EXISTS (SELECT 1 FROM portico_leases l WHERE l.name = 'write ' || j.lane AND l.holder <> '" + unknownHolder + "' AND l.until_at > " + in.clock + "))"
	o.Paused = one[bool](in, "SELECT paused FROM portico_journal_pause WHERE id = 1")
	o.Counts = list[JournalCount](in, `SELECT rule, receiver, now_is, blocked, COUNT(*), COUNT(DISTINCT lane), MIN(begun_at) FROM (
		SELECT rule, receiver, begun_at, CASE WHEN status <> 'parked' OR NOT EXISTS (SELECT 1 FROM portico_journal p
				WHERE p.status = 'parked' AND p.lane = j.lane AND p.receiver = j.receiver AND p.seq < j.seq) THEN lane END AS lane, CASE WHEN `+underWay+` THEN 'pending' ELSE status END AS now_is,
			EXISTS (SELECT 1 FROM portico_journal p WHERE p.status = 'parked' AND p.lane = j.lane AND p.seq < j.seq)
			OR EXISTS (SELECT 1 FROM portico_journal p WHERE p.status = 'parked' AND p.made <> '' AND p.made = j.lane) AS blocked
		FROM portico_journal j WHERE `+unfinished+`) AS c
		GROUP BY rule, receiver, now_is, blocked ORDER BY rule, receiver, now_is, blocked`)
	o.Stopped = list[JournalEntry](in, fmt.Sprint(selectEntries, unfinished+" AND status <> 'pending' AND NOT "+underWay+" ORDER BY seq LIMIT ", limit))
	o.Losses = list[JournalLoss](in, `SELECT receiver, rule, kind, what, entries, first_at, last_at FROM (
		SELECT l.*, ROW_NUMBER() OVER (PARTITION BY receiver, rule ORDER BY last_at DESC, what) AS place FROM portico_journal_losses l) AS placed
		WHERE place <= ? ORDER BY last_at DESC, what`, limit)
	o.Applied = one[int64](in, "SELECT COUNT(*) FROM portico_journal WHERE status = 'applied' AND ended_at > 0 AND ended_at > ?", s.now().Add(-time.Minute))
	return o, failed("reading the journal", in.err)
}

// withMoved begins a statement about unfinished entries whose writes move, or whose rule is gone: those of rules that stay do not count. stopped
// are the lanes with a parked one of them, and those of the objects that creates in such lanes have made.
func withMoved(staying []string) (statement string, args []any) {
	moves := "1 = 1"
	if len(staying) > 0 {
		moves = "rule NOT IN (" + repeated("?", len(staying)) + ")"
	}
	return "WITH moved AS (SELECT seq, lane, made, receiver, status FROM portico_journal WHERE " + unfinished + " AND " + moves + `),
		parked AS (SELECT lane FROM moved WHERE status = 'parked'),
		stopped AS (SELECT lane FROM parked UNION SELECT made FROM moved WHERE made <> '' AND lane IN (SELECT lane FROM parked)) `, nameArgs(staying)
}

// ToCopy is what a tracker has still to get: how many entries, without those of lanes that wait for an operator, and how many such lanes. Last is the
// highest number of any entry.
type ToCopy struct {
	Open, Parked, Last int64
	Paused             bool
}

// JournalToCopy counts what a tracker has still to get of the entries up to a number, without those of rules that stay.
func (s *Store) JournalToCopy(ctx context.Context, receiver string, staying []string, upTo int64) (ToCopy, error) {
	with, args := withMoved(staying)
	return readOne[ToCopy](ctx, s, "reading the journal", with+`SELECT
		(SELECT COUNT(*) FROM moved WHERE receiver = ? AND seq <= ? AND lane NOT IN (SELECT lane FROM stopped)),
		(SELECT COUNT(DISTINCT lane) FROM moved WHERE status = 'parked' AND receiver = ?),
		(SELECT COALESCE(MAX(seq), 0) FROM portico_journal), (SELECT paused FROM portico_journal_pause WHERE id = 1)`,
		append(args, receiver, upTo, receiver)...)
}

// JournalCopying numbers the entries that a tracker is getting now. While copying is paused there are no such entries, or reads that wait for the end of an attempt
// would wait as long as the pause.
func (s *Store) JournalCopying(ctx context.Context, receiver string) ([]int64, error) {
	return read[int64](ctx, s, "reading the journal",
		"SELECT seq FROM portico_journal WHERE status = 'pending' AND receiver = ? AND attempt IS NOT NULL AND "+notPaused, receiver)
}

// PruneJournal removes entries that were finished before a time.
func (s *Store) PruneJournal(ctx context.Context, before time.Time) error {
	return s.write(ctx, "removing old entries of the journal", func(tx *session) {
		tx.exec("DELETE FROM portico_journal WHERE ended_at > 0 AND ended_at <= ? AND NOT "+unfinished, before)
	})
}

// ParkBehind parks what waits behind parked copies to a tracker that gets the writes from now on, except those of rules that stay.
func (s *Store) ParkBehind(ctx context.Context, receiver string, staying []string) error {
	return s.write(ctx, "parking what waits behind parked entries", func(tx *session) {
		with, args := withMoved(staying)
		tx.exec(with+`UPDATE portico_journal SET status = 'parked', reason = ? WHERE status <> 'parked'
			AND seq IN (SELECT seq FROM moved WHERE receiver = ? AND lane IN (SELECT lane FROM stopped))`,
			append(args, "writes have moved without it to the tracker that was to get this copy: compare both trackers, then retry or skip it", receiver)...)
	})
}

// JournalMade reports whether a create of the journal has made the object of a lane, or a copy has made it at the receiver.
func (s *Store) JournalMade(ctx context.Context, lane string) (bool, error) {
	return readOne[bool](ctx, s, "reading the journal", "SELECT EXISTS (SELECT 1 FROM portico_journal WHERE made <> '' AND made = ?)", name(lane))
}

// JournalSpooled reports whether an unfinished entry has its content in a file.
func (s *Store) JournalSpooled(ctx context.Context, file string) (bool, error) {
	return readOne[bool](ctx, s, "reading the journal", "SELECT EXISTS (SELECT 1 FROM portico_journal WHERE spool = ? AND "+unfinished+")", file)
}
