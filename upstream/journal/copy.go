package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// step is one attempt to bring an entry further. It changes the entry, which is stored after it.
type step struct {
	journal  *Journal
	settings *Settings
	// from is the entry as it was read. Until begun, nothing is changed: another process may be faster.
	from  state.JournalEntry
	entry *state.JournalEntry
	begun bool
	// learned are ids that are stored with the entry, unless they contradict others.
	learned []state.IDPair
	of      operation
}

// begin takes the leases of the step and commits its attempt. It returns false if another process has the lane, or has brought the entry further.
func (s *step) begin(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	e := s.from
	e.Attempt = s.entry.Attempt
	var err error
	for range 2 { // the store may have it without having said so; then the second time changes nothing
		if s.begun, err = s.journal.store.BeginCopy(ctx, s.journal.holder, s.settings.lease(), e); err == nil {
			break
		}
		s.journal.logger.Warn("a copy could not be begun", "entry", e.Seq, "cause", err)
	}
	return s.begun
}

// end commits what has become of the entry, and gives the leases back.
func (s *step) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	end := func() error { return s.journal.store.EndCopy(ctx, s.journal.holder, s.from, *s.entry, s.learned) }
	err := s.added(end())
	if reason, contradicts := errors.AsType[parkError](err); contradicts {
		s.park(reason)
		err = end()
	}
	return err
}

const (
	firstBackOff = 250 * time.Millisecond
	maxBackOff   = 30 * time.Second
)

// attempt describes a call that is not idempotent, before it is made.
type attempt struct {
	At time.Time `json:"at"`
	// Known are the ids of what there was before it: attachments of the bug, flag types, or flags of the attachment.
	Known []int64 `json:"known"`
}

// parkError is the error of a step whose entry must wait for an operator, who reads it as the reason.
type parkError string

// Error implements error.
func (e parkError) Error() string { return string(e) }

func parkErrorf(format string, args ...any) parkError { return parkError(fmt.Sprintf(format, args...)) }

func (s *step) park(reason parkError) {
	s.entry.Status, s.entry.Reason = state.JournalParked, string(reason)
}

// again has the entry tried later. A failure counts unless the tracker was merely away.
func (s *step) again(counts bool, cause error) {
	e := s.entry
	wait := min(maxBackOff, firstBackOff<<min(e.Attempts, 10))
	if counts {
		e.Attempts++
	} else {
		wait = max(wait, time.Second)
	}
	e.Reason, e.Next = cause.Error(), time.Now().Add(wait/2+rand.N(wait/2)) // or the same one of two processes would always be first
	if counts && e.Attempts >= s.settings.MaxFailures {
		s.park(parkErrorf("%d attempts failed, the last one with: %v", e.Attempts, cause))
	}
}

// codeHidden says that the caller may not read an attachment, which its submitter may change nevertheless (tracker-behaviour.md section 5).
const codeHidden = 304

// targetError is an error of the target, which is asked what the copy must have.
type targetError struct{ error }

// Unwrap returns the error of the call.
func (e targetError) Unwrap() error { return e.error }

// failed notes why a step failed. A tracker that refuses a write would refuse it again, unless it lacks what another lane will make.
func (s *step) failed(cause error) {
	reason, parks := errors.AsType[parkError](cause)
	refusal, ok := errors.AsType[*mapping.Error](cause)
	by := s.entry.Receiver
	if _, asked := errors.AsType[targetError](cause); asked || s.entry.Status == state.JournalBegun {
		by = s.entry.Target
	}
	switch {
	case parks:
		s.park(reason)
	case errors.Is(cause, errNoPlace):
		s.park(parkErrorf("the outcome of an attempt at %s is unknown: %v", s.entry.Receiver, cause))
	case upstream.NotSent(cause) && refusal.Reason != mapping.ReasonInexpressive:
		s.again(false, cause)
	case isFileError(cause):
		s.again(errors.Is(cause, fs.ErrNotExist), cause) // a file that is not there may be lost
	case s.ownCaller() != nil && (upstream.RefusesLogin(cause) || ok && refusal.Code == codeHidden):
		s.journal.callers.Invalidate(s.entry.Seq) // the next attempt shows a key that is configured
		s.again(false, cause)
		s.entry.Next = time.Now()
	case ok && (refusal.FromTracker() && refusal.Status < 500 && refusal.Status != 429 ||
		refusal.Code == mapping.CodeTooLarge || refusal.Reason == mapping.ReasonInexpressive):
		s.park(parkErrorf("%s: %s refuses it: %s", lacks(refusal), by, refusal.Message))
	default:
		s.again(true, cause)
	}
}

// lacks says in few words why a tracker refuses a write (tracker-behaviour.md section 11).
func lacks(refusal *mapping.Error) string {
	switch code := refusal.Code; {
	case code == mapping.CodeNotFound:
		return "missing user, group, component or flag"
	case code == 106:
		return "missing product"
	case code >= mapping.CodeBadBug && code <= 102:
		return "missing bug"
	case code == 600, code == mapping.CodeTooLarge, code == mapping.CodeCommentLong, refusal.Status == 413:
		return "content beyond the limit"
	}
	return "refused"
}

// side returns a tracker and the caller to ask it as.
func (s *step) side(name string) (at side, err error) {
	at.tracker = s.settings.Trackers[name]
	if at.tracker == nil {
		return at, parkErrorf("there is no tracker %q in the configuration", name)
	}
	at.split = s.settings.Split
	at.comments = func(ctx context.Context, attachment int64) (all []thing, err error) {
		comments, err := s.settings.Comments(ctx, name, at.caller, attachment)
		for id, one := range comments {
			all = append(all, thing{ID: id, Description: one.Text, Created: one.Time})
		}
		return all, err
	}
	var ok bool
	if at.caller, at.own, ok = s.settings.Caller(name, s.entry.Caller, s.ownCaller()); !ok {
		err = parkErrorf("the configuration has no key for %s, neither of %s nor of a service: see callers and trackers.%s.service_key_file",
			name, s.callerName(), name)
	}
	at.caller.Role = "journal"
	return at, err
}

// callerName names the caller of the write.
func (s *step) callerName() string { return cmp.Or(s.entry.Caller, "a caller without a name") }

// ownCaller is the caller of the write as it has shown itself, nil if that is not known any more.
func (s *step) ownCaller() *upstream.Caller {
	caller, _ := s.journal.callers.GetIfPresent(s.entry.Seq)
	return caller
}

// open decrypts the request. A key that is not known here may be known to a process that was reloaded earlier, and a file that cannot be
// opened or written now may be soon, so neither parks at once.
func (s *step) open() (err error) {
	s.of, err = s.settings.open(s.entry)
	if err != nil && !errors.Is(err, errKey) && !isFileError(err) {
		err = parkErrorf("the recorded request is unreadable: %v", err)
	}
	return err
}

// isFileError reports whether the machine has refused a file: its disk is full or away, or too many files are open.
func isFileError(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is
}

// run does what the entry needs, and returns why it could not: a parkError, errKey, or the error of a tracker or of the store.
func (s *step) run(ctx context.Context) error {
	do, name := s.copy, s.entry.Receiver
	if s.entry.Status == state.JournalBegun {
		do, name = s.resolve, s.entry.Target
	}
	at, err := s.side(name)
	if err == nil {
		err = s.open()
	}
	if err != nil {
		return err
	}
	defer s.of.content.Close() // which does nothing without a content, and loses nothing
	return do(ctx, at)
}

// copy makes the write at the receiver, or finds that it has been made.
func (s *step) copy(ctx context.Context, at side) error {
	if err := s.learnFlags(ctx, at); err != nil {
		return err
	}
	open := s.entry.Attempt != nil
	if s.of.repeatable {
		if flags := s.of.flags; flags != nil && len(*flags) > 0 && !open {
			s.entry.Attempt = attemptAfter(nil) // reads that show ids of flags wait for its end
		}
		return s.make(ctx, at)
	}
	present, err := s.of.present(ctx, at)
	if err != nil && (open || !errors.Is(err, errNoPlace)) {
		return err
	}
	fit, err := s.findCopy(ctx, at, present)
	settled := s.last().At.Add(s.settings.Settle)
	switch {
	case err != nil:
		return err
	case len(fit) > 1:
		return parkErrorf("%d new objects at %s look alike, among them %d and %d; look which one is the copy", len(fit), s.entry.Receiver, fit[0].ID, fit[1].ID)
	case len(fit) == 1:
		return s.applied(ctx, at, fit[0].ID)
	case open && time.Now().Before(settled): // the last attempt may still be carried out
		s.entry.Next = settled
		return nil
	case open:
		s.entry.Attempt = nil // an operator's retry is a decision
		return parkErrorf("the outcome of an attempt at %s is unknown, and nothing new there is the copy; look there, then retry or skip it", s.entry.Receiver)
	}
	s.entry.Attempt = attemptAfter(present)
	return s.make(ctx, at)
}

// last is the last attempt, without anything where there was none.
func (s *step) last() (last attempt) {
	_ = json.Unmarshal(s.entry.Attempt, &last) // what attemptAfter has made
	return last
}

// attemptAfter is an attempt that begins now, with what there is before it.
func attemptAfter(present []thing) []byte {
	now := attempt{At: time.Now().UTC()}
	for _, one := range present {
		now.Known = append(now.Known, one.ID)
	}
	text, _ := json.Marshal(now) // of numbers and a time
	return text
}

// make commits the attempt and makes the call.
func (s *step) make(ctx context.Context, at side) error {
	if !s.begun && !s.begin(ctx) {
		s.entry.Attempt = s.from.Attempt // nothing is sent
		return nil
	}
	s.nameCaller(at)
	ctx, cancel := context.WithTimeout(ctx, s.settings.Timeout)
	defer cancel()
	s.of.call.Guard = func() error {
		if end, _ := ctx.Deadline(); time.Now().After(end) { // this process was stopped, and another one may have got the lease
			return Unavailable(context.DeadlineExceeded)
		}
		return nil
	}
	response := s.of.call.Make(ctx, at.tracker, at.caller)
	if response.Err != nil {
		if upstream.NotWritten(response.Err) {
			s.entry.Attempt = nil
		}
		return response.Err
	}
	ids, err := ReplyIDs(response.Document, s.settings.Split)
	if err = errors.Join(err, response.Document.Close()); err != nil {
		s.again(true, err)
		return nil
	}
	var id int64
	if len(ids) == 1 {
		id = ids[0]
	}
	return s.applied(ctx, at, id)
}

// nameCaller adds the label of the caller to a comment that is made with another key, if the comment does not become longer than trackers allow.
func (s *step) nameCaller(at side) {
	comment := s.of.comment
	if comment == nil || isBlank(*comment) || at.own {
		return
	}
	if named := **comment + "\n\n(Copied from " + s.entry.Target + " for " + s.callerName() + ".)"; utf8.RuneCountInString(named) <= mapping.MaxComment {
		*comment = &named
	}
}

// applied notes that the receiver has carried out the write, under the id that it has given to a new object, and learns ids.
func (s *step) applied(ctx context.Context, at side, id int64) error {
	e := s.entry
	if e.Made != "" {
		if err := s.learn(s.of.kind, objectID(e.Made), id); err != nil {
			return err
		}
	}
	if err := s.learnSetFlags(ctx, at); err != nil {
		return fmt.Errorf("learn the ids of flags: %w", err)
	}
	e.Status, e.Reason = state.JournalApplied, ""
	return nil
}
