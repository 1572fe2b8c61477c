package journal_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/state"
)

var (
	errUnknown = &mapping.Error{Code: mapping.CodeTimeout, Status: 504, Message: "too late", Reason: mapping.ReasonTimeout, Unknown: true}
	errAway    = &mapping.Error{Code: mapping.CodeBadGateway, Status: 502, Message: "away", Reason: mapping.ReasonUnreachable}
)

// firstTimes returns an error for the first so many calls.
func firstTimes(n int64, err error) func(upstream.Call) error {
	var calls atomic.Int64
	return func(upstream.Call) error {
		if calls.Add(1) <= n {
			return err
		}
		return nil
	}
}

func idOf(t *testing.T, text string) (id int64) {
	t.Helper()
	_, err := fmt.Sscanf(text[strings.IndexAny(text, "0123456789"):], "%d", &id)
	must(t, err)
	return id
}

func TestWritesAreCopiedInOrder(t *testing.T) {
	s := set(t)
	j := s.start(t)
	id := idOf(t, s.write(t, j, attach(t, []string{"1"}, "new", "content")))
	for _, name := range []string{"second", "third", "last"} {
		s.write(t, j, rename(id, name))
	}
	s.write(t, j, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id, id}, Comment: new("named twice")}})
	made := idOf(t, s.write(t, j, createType("copied")))
	s.write(t, j, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{
		IDs: []int64{made}, FlagTypeFields: mapping.FlagTypeFields{Description: new("changed")},
	}})
	if all := s.drained(t, state.JournalApplied); len(all) != 7 {
		t.Errorf("%d entries, want one for each object of each write", len(all))
	}
	for _, name := range []string{"main", "next"} {
		comments, err := s.settings.Comments(t.Context(), name, s.caller(), id)
		if must(t, err); len(comments) != 3 {
			t.Errorf("%s has the comments %v, want that of the create and two of the update", name, comments)
		}
	}
	if want, got := s.attachments(t, s.main, "1"), s.attachments(t, s.next, "1"); fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("got %v, want %v", got, want)
	}
	if s.named(t, s.next, "1", "last") != 1 {
		t.Error("the attachment is not there")
	}
	reply, err := s.next.Do(t.Context(), s.caller(), upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "TestProduct"}})
	must(t, err)
	if text := process.Text(t, reply.Document, nil); !strings.Contains(text, `"changed"`) {
		t.Errorf("the flag type is not changed: %s", text)
	}
}

func TestContentIsUnreadableAtRest(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { unreadableAtRest(t, set(t), "") })
	t.Run("PostgreSQL", func(t *testing.T) {
		folder, err := os.MkdirTemp("", "portico-at-rest-") //nolint:usetesting // another account cannot get into the folders of t
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		must(t, os.Chmod(folder, 0o755)) // the server runs as another account
		s := set(t)
		t.Setenv("TMPDIR", folder)
		s.dsn = process.Postgres(t)
		s.store = s.open(t)
		unreadableAtRest(t, s, folder)
	})
}

// unreadableAtRest searches the files of the store, its own journal included, and the spool for what a client wrote.
func unreadableAtRest(t *testing.T, s *scene, server string) {
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	const mark = "a mark that nobody may read"
	large := strings.Repeat(mark+"\n", 10_000)
	call := attach(t, []string{"1"}, mark, mark)
	small := intent(call)
	small.Shown = s.caller()
	s.make(t, j, small)
	s.write(t, j, attach(t, []string{"1"}, "large", large))
	text := make([]byte, 60)
	_, err := attach(t, nil, "", large).CreateAttachment.Data.ReadAt(text, 6000)
	must(t, err)
	marks := map[string][]byte{
		"the mark": []byte("mark that"), "the content": text, "a small content": []byte(base64.StdEncoding.EncodeToString([]byte(mark))[:30]), "a key": []byte(s.key),
	}
	files, labels := 0, 0
	for _, folder := range []string{filepath.Dir(s.settings.Spool), cmp.Or(server, s.settings.Spool)} {
		must(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil // the server removes files of its own
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return nil // as above
			}
			for what, mark := range marks {
				if bytes.Contains(content, mark) {
					t.Errorf("%s shows %s", path, what)
				}
			}
			if strings.HasSuffix(path, ".spool") && folder != s.settings.Spool {
				files++
			}
			labels += bytes.Count(content, []byte("robot"))
			return nil
		}))
	}
	if files != 1 || labels == 0 {
		t.Fatalf("%d files in the spool, want that of the large content; the label of the caller is found %d times", files, labels)
	}
	must(t, s.operator().Resume(t.Context()))
	s.drained(t, state.JournalApplied)
	want, got := s.attachments(t, s.main, "1"), s.attachments(t, s.next, "1")
	if fmt.Sprint(want) != fmt.Sprint(got) || s.named(t, s.next, "1", "large") != 1 {
		t.Error("the contents are not the same")
	}
	process.Eventually(t, "nothing is left in the spool", func() bool {
		left, err := os.ReadDir(s.settings.Spool)
		return err == nil && len(left) == 0
	})
}

// TestEveryWriteIsCopiedOnce: the receiver has carried the copy out, and the response was lost. A write that the journal does not know is never
// sent, and a create that it does not find again would be made twice.
func TestEveryWriteIsCopiedOnce(t *testing.T) {
	calls := map[mapping.Operation]upstream.Call{
		mapping.OpCreateFlagType:    createType("new"),
		mapping.OpUpdateFlagTypes:   {UpdateFlagTypes: &mapping.FlagTypeUpdate{Names: []string{"review"}, FlagTypeFields: mapping.FlagTypeFields{Description: new("changed")}}},
		mapping.OpCreateAttachment:  attach(t, []string{"1"}, "once", "content"),
		mapping.OpUpdateAttachments: rename(1, "renamed"),
	}
	for _, operation := range mapping.Operations() {
		if !operation.IsWrite() {
			continue
		}
		t.Run(string(operation), func(t *testing.T) {
			call, ok := calls[operation]
			if !ok {
				t.Fatalf("add a call of %s", operation)
			}
			call.Operation = operation
			s := set(t)
			var copies atomic.Int64
			lost := firstTimes(1, errUnknown)
			s.next.fail(nil, func(copied upstream.Call) error {
				copies.Add(1)
				if update := copied.UpdateFlagTypes; update != nil && (len(update.IDs) == 0 || len(update.Names) > 0) {
					t.Errorf("the copy is of %v and %q, want ids", update.IDs, update.Names)
				}
				return lost(copied)
			})
			s.write(t, s.start(t), call)
			all := s.drained(t, state.JournalApplied)
			if len(all) != 1 || (all[0].Made != "") != operation.IsCreate() || operation.IsCreate() && copies.Load() != 1 {
				t.Errorf("got %d copies and %+v", copies.Load(), all)
			}
		})
	}
}

// createType is a call that creates a flag type.
func createType(name string) upstream.Call {
	fields := mapping.FlagTypeFields{Name: &name, Description: new("d"), Inclusions: &mapping.Scopes{{Product: "TestProduct"}}}
	return upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: fields}}
}

// TestUnknownAttemptIsNotRepeated: the receiver has not carried the copy out, so only an operator can tell what has become of it.
func TestUnknownAttemptIsNotRepeated(t *testing.T) {
	s := set(t)
	s.next.fail(firstTimes(1, errUnknown), nil)
	j := s.start(t)
	s.write(t, j, attach(t, []string{"1"}, "once", "content"))
	all := s.drained(t, state.JournalParked)
	if !strings.Contains(all[0].Reason, "nothing new there is the copy") || s.named(t, s.next, "1", "once") != 0 {
		t.Errorf("it was made again: %q", all[0].Reason)
	}
	must(t, s.operator().Retry(t.Context(), all[0].Seq))
	s.drained(t, state.JournalApplied)
	if got := s.named(t, s.next, "1", "once"); got != 1 {
		t.Errorf("there are %d copies", got)
	}
}

// TestACopyThatCouldNotBeNotedIsMadeLater: the store is away for a moment when a copy is to be made, so nothing is sent, and nothing is unknown.
func TestACopyThatCouldNotBeNotedIsMadeLater(t *testing.T) {
	for name, cuts := range map[string]func(*process.Relay) *atomic.Int64{
		"before": func(relay *process.Relay) *atomic.Int64 { return &relay.CutBefore },
		"after":  func(relay *process.Relay) *atomic.Int64 { return &relay.CutAfter },
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j, relay := s.relayed(t)
			must(t, s.operator().Start(t.Context()))
			s.write(t, j, attach(t, []string{"1"}, "once", "content"))
			cuts(relay).Store(1)
			must(t, s.operator().Resume(t.Context()))
			all := s.drained(t, state.JournalApplied, state.JournalParked)
			if got := s.named(t, s.next, "1", "once"); got != 1 || all[0].Status == state.JournalParked || cuts(relay).Load() != 0 {
				t.Errorf("there are %d copies, and %+v", got, all)
			}
		})
	}
}

// TestLateAttemptIsWaitedFor: the receiver may carry a copy out after its response was lost.
func TestLateAttemptIsWaitedFor(t *testing.T) {
	s := set(t)
	s.settings.Settle = time.Hour
	s.next.fail(firstTimes(1, errUnknown), nil)
	call := attach(t, []string{"1"}, "late", "content")
	s.write(t, s.start(t), call)
	var all []state.JournalEntry
	process.Eventually(t, "the copy was looked for", func() bool {
		var err error
		all, err = s.store.JournalOf(t.Context(), 10, false)
		must(t, err)
		return all[0].Status == state.JournalParked || time.Until(all[0].Next) > s.settings.Settle/2
	})
	if all[0].Status == state.JournalParked {
		t.Fatalf("it is not waited for: %s", all[0].Reason)
	}
	must(t, call.Make(t.Context(), s.next.Tracker, s.caller()).Err)
	all[0].Next = time.Time{} // the hour is over
	must(t, s.store.PutJournal(t.Context(), all[0], all[0].Status, state.Record{}))
	s.drained(t, state.JournalApplied)
	if got := s.named(t, s.next, "1", "late"); got != 1 {
		t.Errorf("there are %d copies", got)
	}
}

// TestACopyThatIsHeldUpIsNotSent: while this process was stopped, another one may have made it.
func TestACopyThatIsHeldUpIsNotSent(t *testing.T) {
	s := set(t)
	var late atomic.Int64
	s.next.fail(func(call upstream.Call) error {
		if err := call.Guard(); err != nil || late.Add(1) > 1 {
			return err
		}
		time.Sleep(s.settings.Timeout + time.Millisecond)
		err := call.Guard()
		if !upstream.NotSent(err) {
			t.Errorf("when its time is over: %v", err)
		}
		return err
	}, nil)
	s.write(t, s.start(t), attach(t, []string{"1"}, "once", "content"))
	s.drained(t, state.JournalApplied)
	if got := s.named(t, s.next, "1", "once"); got != 1 {
		t.Errorf("there are %d copies", got)
	}
}

// TestACopyThatAnotherProcessMakes is left to it, and looked at again a few times in a second.
func TestACopyThatAnotherProcessMakes(t *testing.T) {
	s := set(t)
	var tried atomic.Int64
	known := s.settings.Caller
	s.settings.Caller = func(at, label string, shown *upstream.Caller) (upstream.Caller, bool, bool) {
		if at == "next" {
			tried.Add(1)
		}
		return known(at, label, shown)
	}
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	s.write(t, j, attach(t, []string{"1"}, "once", "content"))
	entries, err := s.store.JournalOf(t.Context(), 1, true)
	must(t, err)
	j.Close()
	must(t, s.operator().Resume(t.Context()))
	if begun, err := s.store.BeginCopy(t.Context(), "another process", time.Hour, entries[0]); !begun || err != nil {
		t.Fatalf("got %v, %v", begun, err)
	}
	s.start(t)
	process.Eventually(t, "the lease is in the way", func() bool { return tried.Load() > 0 })
	time.Sleep(time.Second) // which is what it is tried in
	if n := tried.Load(); n > 20 || s.named(t, s.next, "1", "once") != 0 {
		t.Errorf("it was tried %d times in a second", n)
	}
}

// TestUnknownNewFlagIsNotSetTwice: the receiver has set the new flag, and the response was lost.
func TestUnknownNewFlagIsNotSetTwice(t *testing.T) {
	s := set(t)
	s.next.fail(nil, firstTimes(1, errUnknown))
	j := s.start(t)
	before := s.attachments(t, s.next, "1")[0]
	call := rename(before.ID, "flagged")
	call.UpdateAttachments.Flags = []mapping.FlagChange{{Name: new("review"), Status: "+", New: new(true)}}
	s.write(t, j, call)
	s.drained(t, state.JournalApplied)
	if after := s.attachments(t, s.next, "1")[0]; len(after.Flags) != len(before.Flags)+1 {
		t.Errorf("the flags were %v, and are %v", before.Flags, after.Flags)
	}
}

// TestLookAlikesAreNotGuessed: somebody else has made the same attachment meanwhile.
func TestLookAlikesAreNotGuessed(t *testing.T) {
	s := set(t)
	s.next.fail(nil, func(call upstream.Call) error {
		call.CreateAttachment.Bugs = []string{"1"}
		if response := call.Make(t.Context(), s.next.Tracker, s.caller()); response.Err != nil {
			return response.Err
		}
		return errUnknown
	})
	j := s.start(t)
	s.write(t, j, attach(t, []string{"1"}, "twice", "content"))
	all := s.drained(t, state.JournalParked)
	if !strings.Contains(all[0].Reason, "2 new objects at next look alike") {
		t.Errorf("the reason is %q", all[0].Reason)
	}
}

// TestUnknownCommentIsFound where its attempt has made it, under the name of its caller too.
func TestUnknownCommentIsFound(t *testing.T) {
	s := set(t)
	id := s.attachments(t, s.main, "1")[0].ID
	said := func() (n int) {
		comments, err := s.settings.Comments(t.Context(), "next", s.caller(), id)
		must(t, err)
		for _, one := range comments {
			n += strings.Count(one.Text, "said\nonce")
		}
		return n
	}
	call := rename(id, "commented")
	call.UpdateAttachments.Comment = new("said\r\nonce")    // trackers end lines in their own way
	must(t, call.Make(t.Context(), s.next, s.caller()).Err) // an earlier comment that looks alike
	s.next.fail(nil, firstTimes(1, errUnknown))
	j := s.start(t)
	begun := intent(call)
	begun.Caller = "somebody else"
	s.make(t, j, begun)
	s.drained(t, state.JournalApplied)
	if got := said(); got != 2 {
		t.Errorf("it is said %d times at next, want 2", got)
	}
}

// TestWhatTheDataBringIsNotCopied: of the updates that are recorded while the data are copied, some are in the copy, whatever the clock of the target says.
func TestWhatTheDataBringIsNotCopied(t *testing.T) {
	for _, skew := range []time.Duration{0, -10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			must(t, s.operator().Start(t.Context()))
			id := s.attachments(t, s.main, "1")[0].ID
			said := func(text string) upstream.Call {
				return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Comment: &text}}
			}
			set := rename(id, "set")
			set.UpdateAttachments.Flags = []mapping.FlagChange{{Name: new("review"), Status: "+", New: new(true)}}
			now := time.Now().Add(skew)
			s.clock.Store(&now)
			for _, call := range []upstream.Call{said("brought"), set, said("twice")} {
				must(t, call.Make(t.Context(), s.next.Tracker, s.caller()).Err)
				s.write(t, j, call)
			}
			s.clock.Store(new(now.Add(5 * time.Second)))
			s.write(t, j, said("later"))
			s.write(t, j, said("twice"))
			s.clock.Store(new(now.Add(10 * time.Second)))
			must(t, s.operator().Resume(t.Context()))
			s.drained(t, state.JournalApplied)
			comments, err := s.settings.Comments(t.Context(), "next", s.caller(), id)
			must(t, err)
			counts := map[string]int{}
			for _, one := range comments {
				for _, text := range []string{"brought", "later", "twice"} {
					counts[text] += strings.Count(one.Text, text)
				}
			}
			if want := map[string]int{"brought": 1, "later": 1, "twice": 3}; !maps.Equal(counts, want) { // which of both is there cannot be told
				t.Errorf("the receiver has the comments %v, want %v", counts, want)
			}
			if got, want := s.attachments(t, s.next, "1")[0].Flags, s.attachments(t, s.main, "1")[0].Flags; len(got) != len(want) {
				t.Errorf("the receiver has the flags %v, want %v", got, want)
			}
		})
	}
}

// TestWhatTheDataBringAfterAKill: what waits since a kill is in the data that are copied after it.
func TestWhatTheDataBringAfterAKill(t *testing.T) {
	s := set(t)
	j := s.start(t)
	must(t, s.store.KillJournal(t.Context(), "main", state.Record{Actor: "tester", Action: "kill"}))
	id := s.attachments(t, s.main, "1")[0].ID
	call := upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Comment: new("said once")}}
	s.clock.Store(new(time.Now()))
	s.write(t, j, call)
	must(t, s.operator().Start(t.Context()))
	must(t, call.Make(t.Context(), s.next.Tracker, s.caller()).Err) // at the same time, as a copy of the data does
	must(t, s.operator().Resume(t.Context()))
	s.drained(t, state.JournalApplied)
	comments, err := s.settings.Comments(t.Context(), "next", s.caller(), id)
	must(t, err)
	n := 0
	for _, one := range comments {
		n += strings.Count(one.Text, "said once")
	}
	if n != 1 {
		t.Errorf("the receiver has the comment %d times", n)
	}
}

// TestWhatTheDataBringNeedsTheTarget: without a key for the target it cannot be told what the copied data have brought, so nothing is made.
func TestWhatTheDataBringNeedsTheTarget(t *testing.T) {
	s := set(t)
	all := s.settings.Caller
	s.settings.Caller = func(tracker, label string, shown *upstream.Caller) (upstream.Caller, bool, bool) {
		caller, own, ok := all(tracker, label, shown)
		return caller, own, ok && tracker != "main"
	}
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	id := s.attachments(t, s.main, "1")[0].ID
	s.write(t, j, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Comment: new("said once")}})
	must(t, s.operator().Resume(t.Context()))
	s.drained(t, state.JournalParked)
	comments, err := s.settings.Comments(t.Context(), "next", s.caller(), id)
	must(t, err)
	for _, one := range comments {
		if strings.Contains(one.Text, "said once") {
			t.Error("the receiver has the comment of an entry that is parked")
		}
	}
}

// TestAnOperatorForgetsNoAttempt: an operator parks an entry while its copy is under way. What the operator has read of it is from before.
func TestAnOperatorForgetsNoAttempt(t *testing.T) {
	s := set(t)
	s.pairing(t)
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	s.write(t, j, attach(t, []string{"1"}, "once", "content"))
	all, err := s.store.JournalOf(t.Context(), 1, true)
	must(t, err)
	s.next.fail(nil, func(upstream.Call) error {
		read := all[0]
		read.Status, read.Reason = state.JournalParked, "by an operator"
		must(t, s.store.PutJournal(t.Context(), read, state.JournalPending, state.Record{}))
		return errUnknown
	})
	must(t, s.operator().Resume(t.Context()))
	s.drained(t, state.JournalParked)
	s.next.fail(nil, nil)
	must(t, s.operator().Retry(t.Context(), all[0].Seq))
	s.drained(t, state.JournalApplied)
	if got := s.named(t, s.next, "1", "once"); got != 1 {
		t.Errorf("there are %d copies", got)
	}
}

func TestUnknownCommentIsParked(t *testing.T) {
	s := set(t)
	s.next.fail(firstTimes(1, errUnknown), nil)
	j := s.start(t)
	id := s.attachments(t, s.main, "1")[0].ID
	call := rename(id, "commented")
	call.UpdateAttachments.Comment = new("said once")
	s.write(t, j, call)
	all := s.drained(t, state.JournalParked)
	if !strings.Contains(all[0].Reason, "nothing new there is the copy") {
		t.Errorf("the reason is %q", all[0].Reason)
	}
	must(t, s.operator().Skip(t.Context(), all[0].Seq))
	s.write(t, j, rename(id, "later"))
	s.drained(t, state.JournalSkipped, state.JournalApplied)
}

// TestCopiesWaitForTheReceiver: a tracker that is away parks no lane, however long it is.
func TestCopiesWaitForTheReceiver(t *testing.T) {
	s := set(t)
	s.next.fail(firstTimes(4, errAway), nil)
	j := s.start(t)
	s.write(t, j, attach(t, []string{"1"}, "late", "content"))
	all := s.drained(t, state.JournalApplied)
	if all[0].Attempts != 0 || s.named(t, s.next, "1", "late") != 1 {
		t.Errorf("got %+v", all)
	}
}

// TestARefusalSaysWhatIsMissing at the receiver.
func TestARefusalSaysWhatIsMissing(t *testing.T) {
	for refusal, want := range map[*mapping.Error]string{
		{Code: 106, Status: 404}: "missing product", {Code: 102, Status: 401}: "missing bug", {Code: 1, Status: 413}: "content beyond the limit",
		{Code: 103, Status: 404}: "refused", mapping.Inexpressible("no"): "refused",
	} {
		s := set(t)
		refusal.Message = "no"
		s.next.fail(firstTimes(1, refusal), nil)
		s.write(t, s.start(t), attach(t, []string{"1"}, "refused", "content"))
		if all := s.drained(t, state.JournalParked); !strings.HasPrefix(all[0].Reason, want+": next refuses it") {
			t.Errorf("the reason is %q, want %s", all[0].Reason, want)
		}
	}
}

// TestARefusalNamesItsTracker also where the target hides what the copy must have.
func TestARefusalNamesItsTracker(t *testing.T) {
	s := set(t)
	comments := s.settings.Comments
	s.settings.Comments = func(ctx context.Context, tracker string, caller upstream.Caller, attachment int64) (map[int64]upstream.Comment, error) {
		if tracker == "main" {
			return nil, &mapping.Error{Code: 102, Status: 401, Message: "no"}
		}
		return comments(ctx, tracker, caller, attachment)
	}
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	call := rename(1, "said")
	call.UpdateAttachments.Comment = new("said once")
	s.write(t, j, call)
	must(t, s.operator().Resume(t.Context()))
	if got, want := s.drained(t, state.JournalParked)[0].Reason, "missing bug: main refuses it: no"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
}

// TestCopyWithoutAKey waits for an operator, who is told what to set.
func TestCopyWithoutAKey(t *testing.T) {
	s := set(t)
	s.settings.Caller = func(string, string, *upstream.Caller) (caller upstream.Caller, own, ok bool) {
		return caller, false, false
	}
	j := s.start(t)
	s.write(t, j, attach(t, []string{"2"}, "not copied", "content"))
	process.Eventually(t, "the entry is parked", func() bool {
		all, err := s.store.JournalOf(t.Context(), 1, false)
		must(t, err)
		return strings.Contains(all[0].Reason, "neither of robot nor of a service: see callers and trackers.next.service_key_file")
	})
}

// TestRefusedCopyStopsItsLane: nothing overtakes what is parked in a lane, and other lanes go on.
func TestRefusedCopyStopsItsLane(t *testing.T) {
	s := set(t)
	refusal := &mapping.Error{Code: 51, Status: 404, Message: "not authorized"}
	s.next.fail(firstTimes(1, refusal), nil)
	j := s.start(t)
	mine := s.attachments(t, s.main, "1")[0].ID
	s.write(t, j, rename(mine, "first"))
	process.Eventually(t, "the lane is parked", func() bool {
		parked, err := s.store.JournalOf(t.Context(), 10, false)
		must(t, err)
		return len(parked) == 1 && parked[0].Status == state.JournalParked && strings.Contains(parked[0].Reason, "missing user, group, component or flag: next refuses it: not authorized")
	})
	s.write(t, j, rename(mine, "second"))
	s.write(t, j, attach(t, []string{"2"}, "other lane", "content"))
	process.Eventually(t, "another lane goes on", func() bool { return s.named(t, s.next, "2", "other lane") == 1 })
	process.Eventually(t, "the status has one parked lane and one write behind it", func() bool {
		status, err := j.Status(t.Context())
		must(t, err)
		return status.Parked == 1 && status.ParkedLanes == 1 && status.Pending == 1 && status.Lag > 0
	})
	parked, err := s.store.JournalOf(t.Context(), 10, false)
	must(t, err)
	must(t, s.operator().Retry(t.Context(), parked[0].Seq))
	all := s.drained(t, state.JournalApplied)
	var wrong *journal.StatusError
	if err := s.operator().Skip(t.Context(), all[0].Seq); !errors.As(err, &wrong) {
		t.Errorf("a finished entry was skipped: %v", err)
	}
	if got := s.named(t, s.next, "1", "second"); got != 1 {
		t.Error("the second write is not there")
	}
	audit, err := s.store.Audit(t.Context(), 1)
	if must(t, err); audit[0].Actor != "tester" || !strings.Contains(audit[0].Action, "retry") {
		t.Errorf("the audit trail has %+v", audit)
	}
}

// TestARetryDoesNotOverwriteALaterWrite: its bug has moved to a product that the other tracker writes. The operator skips the entry, which is a loss.
func TestARetryDoesNotOverwriteALaterWrite(t *testing.T) {
	s := set(t)
	s.next.fail(firstTimes(1, &mapping.Error{Code: 51, Status: 404, Message: "not authorized"}), nil)
	j := s.start(t)
	s.write(t, j, rename(1, "first"))
	parked := s.drained(t, state.JournalParked)[0]
	later := intent(rename(1, "second"))
	later.Target, later.Receiver = later.Receiver, later.Target
	done := begin(t, j, later)
	response := later.Call.Make(t.Context(), s.next, s.caller())
	done(t.Context(), response)
	must(t, response.Err)
	err := s.operator().Retry(t.Context(), parked.Seq)
	if _, refused := errors.AsType[*journal.StatusError](err); !refused || !strings.Contains(err.Error(), "next has got a later write of attachment 1, entry 2,") {
		t.Errorf("a retry: %v", err)
	}
	must(t, s.operator().Skip(t.Context(), parked.Seq))
	s.drained(t, state.JournalSkipped, state.JournalApplied)
	for _, at := range []upstream.Tracker{s.main, s.next} {
		if got := s.attachments(t, at, "1")[0].Summary; got != "second" {
			t.Errorf("a tracker has %q", got)
		}
	}
	status, err := j.Status(t.Context())
	must(t, err)
	if back := status.Outlook(journal.Scope{Rule: "all", Rules: []string{"all"}, Receiver: "next", Replicates: true}); back.State != journal.OutlookUnsafe || !strings.Contains(back.String(), "skipped entry 1") {
		t.Errorf("going back is %s", back)
	}
}

// TestServiceNamesTheCaller: a comment that is made with the key of the service says for whom.
func TestServiceNamesTheCaller(t *testing.T) {
	s := set(t)
	var comments []string
	s.next.fail(func(call upstream.Call) error {
		comments = append(comments, *call.CreateAttachment.Comment)
		return nil
	}, nil)
	j := s.start(t)
	long := strings.Repeat("é", mapping.MaxComment)
	for i, label := range []string{"robot", "other", "", "other"} {
		call := attach(t, []string{"1"}, fmt.Sprint("number ", i), "content")
		call.CreateAttachment.Comment = new("mine")
		if i == 3 {
			call.CreateAttachment.Comment = &long
		}
		intent := intent(call)
		intent.Caller = label
		must(t, s.make(t, j, intent).Err)
	}
	s.drained(t, state.JournalApplied)
	want := []string{"mine", "mine\n\n(Copied from main for other.)", "mine\n\n(Copied from main for a caller without a name.)", long}
	if fmt.Sprintf("%q", comments) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", comments, want)
	}
}

// TestCopyOfTheDataIsRecognised: the operator has loaded data into the receiver that has the write already. Another content is another attachment.
func TestCopyOfTheDataIsRecognised(t *testing.T) {
	for content, want := range map[string]struct {
		status state.JournalStatus
		copies int
	}{"content": {state.JournalApplied, 1}, "another": {state.JournalParked, 2}} {
		t.Run(content, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			must(t, s.operator().Start(t.Context()))
			s.write(t, j, attach(t, []string{"1"}, "in the dump", "content"))
			must(t, attach(t, []string{"1"}, "in the dump", content).Make(t.Context(), s.next, s.caller()).Err)
			must(t, s.operator().Resume(t.Context()))
			all := s.drained(t, want.status)
			if got := s.named(t, s.next, "1", "in the dump"); got != want.copies {
				t.Errorf("there are %d copies", got)
			}
			if want.status == state.JournalParked && !strings.Contains(all[0].Reason, "it is copied, but attachment") {
				t.Errorf("the reason is %q", all[0].Reason)
			}
		})
	}
}

// learned are the pairs of ids that a journal has learned.
type learned struct {
	mu  sync.Mutex
	all map[string]int64
}

func (l *learned) Pair(kind string, client int64, tracker string, shown int64) (state.IDPair, error) {
	return state.IDPair{Kind: kind, Client: client, Side: tracker, Native: shown}, nil
}

func (l *learned) Born(kind, tracker string, shown int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[fmt.Sprintf("%s %d at %s", kind, shown, tracker)] == 0
}

func (l *learned) Added(pairs []state.IDPair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pair := range pairs {
		l.all[fmt.Sprintf("%s %d at %s", pair.Kind, pair.Client, pair.Side)] = pair.Native
	}
}

// pairing has the receiver give other ids to what is new, and the journal learn them.
func (s *scene) pairing(t *testing.T) *learned {
	t.Helper()
	for range 3 {
		must(t, reviewed(attach(t, []string{"1"}, "other", "content"), "+").Make(t.Context(), s.next, s.caller()).Err)
	}
	pairs := &learned{all: map[string]int64{}}
	s.settings.Pairs, s.next.ids = pairs, pairs
	return pairs
}

// reviewed adds a flag to a create.
func reviewed(call upstream.Call, status string) upstream.Call {
	call.CreateAttachment.Flags = append(call.CreateAttachment.Flags, mapping.FlagChange{Name: new("review"), Status: status})
	return call
}

// TestIDsOfCopiesAreLearned: the receiver gives other ids to attachments and flags, one for each bug.
func TestIDsOfCopiesAreLearned(t *testing.T) {
	s := set(t)
	pairs := s.pairing(t)
	j := s.start(t)
	s.write(t, j, reviewed(attach(t, []string{"1", "2"}, "new", "content"), "?"))
	if all := s.drained(t, state.JournalApplied); len(all) != 2 {
		t.Errorf("%d entries, want one for each bug", len(all))
	}
	for _, bug := range []string{"1", "2"} {
		mine, copied := s.attachments(t, s.main, bug), s.attachments(t, s.next, bug)
		one, other := mine[len(mine)-1], copied[len(copied)-1]
		if one.Summary != "new" || other.Summary != "new" || one.ID == other.ID {
			t.Fatalf("bug %s has %v and %v", bug, mine, copied)
		}
		if got := pairs.all[fmt.Sprintf("attachment %d at next", one.ID)]; got != other.ID {
			t.Errorf("attachment %d is %d at next, want %d", one.ID, got, other.ID)
		}
		if len(one.Flags) != 1 || len(other.Flags) != 1 || pairs.all[fmt.Sprintf("flag %d at next", one.Flags[0].ID)] != other.Flags[0].ID {
			t.Errorf("flags %v are %v at next; known are %v", one.Flags, other.Flags, pairs.all)
		}
	}
}

// TestAContradictionIsNoted: the store knows another object under the id of a copy.
func TestAContradictionIsNoted(t *testing.T) {
	for _, flags := range []bool{false, true} {
		s := set(t)
		s.pairing(t)
		j := s.start(t)
		must(t, s.operator().Start(t.Context()))
		call := attach(t, []string{"1"}, "new", "content")
		if flags { // their ids are asked for when that of the attachment is stored
			call = reviewed(call, "?")
		}
		id := idOf(t, s.write(t, j, call))
		must(t, s.store.AddIDs(t.Context(), []state.IDPair{{Kind: "attachment", Client: id, Side: "next", Native: 999}}))
		must(t, s.operator().Resume(t.Context()))
		all := s.drained(t, state.JournalParked)
		j.Close()
		if log := s.log.String(); !strings.Contains(all[0].Reason, "contradicts") || strings.Contains(log, "could not be noted") {
			t.Errorf("flags %v: %s\n%s", flags, all[0].Reason, log)
		}
	}
}

// TestCopiesShowTheirCaller: a copy shows the credential of its own request while that is known, and the configured one once the receiver refuses it.
func TestCopiesShowTheirCaller(t *testing.T) {
	for name, refused := range map[string]bool{"accepted": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			var used []bool
			var mu sync.Mutex
			s.settings.Caller = func(tracker, _ string, shown *upstream.Caller) (upstream.Caller, bool, bool) {
				mu.Lock()
				defer mu.Unlock()
				if tracker == "next" {
					used = append(used, shown != nil && shown.Credentials.APIKey == "mine")
				}
				return s.caller(), shown != nil, true
			}
			if refused {
				s.next.fail(firstTimes(1, &mapping.Error{Code: mapping.CodeBadKey, Status: 400, Message: "bad key"}), nil)
			}
			j := s.start(t)
			call := attach(t, []string{"1"}, "mine", "content")
			intent := intent(call)
			intent.Shown = upstream.Caller{Credentials: upstream.Credentials{APIKey: "mine"}}
			s.make(t, j, intent)
			s.drained(t, state.JournalApplied)
			mu.Lock()
			defer mu.Unlock()
			if len(used) == 0 || !used[0] || used[len(used)-1] == refused {
				t.Errorf("the credential of the request was shown: %v", used)
			}
		})
	}
}

// TestCopyOfWhatItsCallerMayNotRead: trackers let the submitter of a private attachment change it, but not read it by its id.
func TestCopyOfWhatItsCallerMayNotRead(t *testing.T) {
	s := set(t)
	s.settings.Caller = func(_, _ string, shown *upstream.Caller) (upstream.Caller, bool, bool) {
		if shown != nil {
			return *shown, true, true
		}
		return s.caller(), false, true
	}
	s.pairing(t)
	j := s.start(t)
	for _, update := range []mapping.AttachmentUpdate{
		{Comment: new("a comment of the submitter")}, {Flags: []mapping.FlagChange{{Name: new("review"), Status: "?"}}},
	} {
		update.IDs = []int64{7} // a private one
		intent := intent(upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &update})
		intent.Shown = upstream.Caller{Credentials: upstream.Credentials{APIKey: tracker.FixtureKeys()["exinsider"]}}
		done := begin(t, j, intent)
		response := intent.Call.Make(t.Context(), s.main, intent.Shown)
		must(t, response.Err)
		done(t.Context(), response)
	}
	s.drained(t, state.JournalApplied)
}

// TestFlagsThatAreGoneAreFollowed: a flag is set and cleared at the target before the first of it is copied.
func TestFlagsThatAreGoneAreFollowed(t *testing.T) {
	s := set(t)
	s.pairing(t)
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	id := idOf(t, s.write(t, j, attach(t, []string{"1"}, "flagged", "content")))
	update := func(flag mapping.FlagChange) upstream.Call {
		return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Flags: []mapping.FlagChange{flag}}}
	}
	s.write(t, j, update(mapping.FlagChange{Name: new("review"), Status: "?", New: new(true)}))
	var flag int64
	for _, one := range s.attachments(t, s.main, "1") {
		if one.ID == id {
			flag = one.Flags[0].ID
		}
	}
	s.write(t, j, update(mapping.FlagChange{ID: &flag, Status: "X"}))
	s.write(t, j, rename(id, "after it"))
	must(t, s.operator().Resume(t.Context()))
	s.drained(t, state.JournalApplied)
	for _, one := range s.attachments(t, s.next, "1") {
		if one.Summary == "after it" && len(one.Flags) != 0 {
			t.Errorf("the flag is left: %+v", one.Flags)
		}
	}
	if s.named(t, s.next, "1", "after it") != 1 {
		t.Error("the lane has stopped")
	}
}

// TestAFlagThatIsNotKnownIsNotGuessed: another client has set one at the receiver meanwhile, or none of it was copied.
func TestAFlagThatIsNotKnownIsNotGuessed(t *testing.T) {
	for status, first := range map[string]func(*scene, *journal.Journal, upstream.Call) error{
		"X": func(s *scene, j *journal.Journal, call upstream.Call) error {
			s.write(t, j, call)
			return call.Make(t.Context(), s.next, s.caller()).Err
		},
		"+": func(s *scene, _ *journal.Journal, call upstream.Call) error {
			return call.Make(t.Context(), s.main, s.caller()).Err
		},
	} {
		s := set(t)
		s.pairing(t)
		j := s.start(t)
		must(t, s.operator().Start(t.Context()))
		call := rename(1, "flagged")
		call.UpdateAttachments.Flags = []mapping.FlagChange{{Name: new("review"), Status: "?", New: new(true)}}
		must(t, first(s, j, call))
		var last int64
		for _, one := range s.attachments(t, s.main, "1")[0].Flags {
			last = max(last, one.ID)
		}
		call.UpdateAttachments.Flags = []mapping.FlagChange{{ID: &last, Status: status}}
		s.write(t, j, call)
		must(t, s.operator().Resume(t.Context()))
		all := s.drained(t, state.JournalApplied, state.JournalParked)
		if got, want := all[len(all)-1].Reason, fmt.Sprintf("flag %d of the attachment is not known at next", last); got != want {
			t.Errorf("%s: got %q, want %q", status, got, want)
		}
	}
}

// TestAFlagThatIsSetAgainIsNotTakenForTheFirst: the first one is cleared, and another one set, before the first is copied.
func TestAFlagThatIsSetAgainIsNotTakenForTheFirst(t *testing.T) {
	for name, together := range map[string]bool{"granted": false, "granted by the write that clears the first": true} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			pairs := s.pairing(t)
			j := s.start(t)
			must(t, s.operator().Start(t.Context()))
			id := idOf(t, s.write(t, j, attach(t, []string{"1"}, "flagged", "content")))
			update := func(flags ...mapping.FlagChange) {
				s.write(t, j, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Flags: flags}})
			}
			only := func(at upstream.Tracker) shown {
				all := s.attachments(t, at, "1")
				return all[len(all)-1]
			}
			update(mapping.FlagChange{Name: new("review"), Status: "?", New: new(true)})
			clear, again := mapping.FlagChange{ID: new(only(s.main).Flags[0].ID), Status: "X"}, mapping.FlagChange{Name: new("review"), Status: "+", New: new(true)}
			if together {
				update(clear, again)
			} else {
				update(clear)
				update(again)
			}
			must(t, s.operator().Resume(t.Context()))
			s.drained(t, state.JournalApplied)
			mine, copied := only(s.main).Flags, only(s.next).Flags
			if len(mine) != 1 || len(copied) != 1 || copied[0].Status != "+" || pairs.all[fmt.Sprintf("flag %d at next", mine[0].ID)] != copied[0].ID {
				t.Errorf("flags %+v are %+v at next; known are %v", mine, copied, pairs.all)
			}
		})
	}
}

// TestKillStopsCopies: what waits at the kill would overwrite what is written after it, so it is parked, whichever comes first, the end of the
// kill or of the pause. What is recorded after that is copied.
func TestKillStopsCopies(t *testing.T) {
	for name, end := range map[string]func(*scene) error{
		"revived": func(s *scene) error { return s.store.ParkKilled(t.Context()) },
		"resumed": func(s *scene) error { return s.operator().Resume(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			must(t, s.operator().Start(t.Context()))
			s.write(t, j, rename(1, "before the kill"))
			for range 2 { // the second time it is known already
				must(t, s.store.KillJournal(t.Context(), "next", state.Record{Actor: "tester", Action: "kill", Reason: "a test"}))
			}
			must(t, rename(1, "after the kill").Make(t.Context(), s.next, s.caller()).Err)
			must(t, end(s))
			s.write(t, j, rename(2, "after the end"))
			must(t, s.operator().Resume(t.Context()))
			all := s.drained(t, state.JournalParked, state.JournalApplied)
			if all[0].Status != state.JournalParked || !strings.Contains(all[0].Reason, "the kill switch") || all[1].Status != state.JournalApplied {
				t.Errorf("got %v (%s) and %v", all[0].Status, all[0].Reason, all[1].Status)
			}
			if got := s.attachments(t, s.next, "1")[0].Summary; got != "after the kill" {
				t.Errorf("the receiver has %q", got)
			}
			audit, err := s.store.Audit(t.Context(), 100)
			must(t, err)
			kills := slices.DeleteFunc(audit, func(r state.Record) bool { return r.Action != "kill" })
			if len(kills) != 1 {
				t.Errorf("the kill is in the audit trail %d times", len(kills))
			}
		})
	}
}
