package journal_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// TestIntentSurvivesACrash: the process ends after the tracker was asked, and before the outcome is committed.
func TestIntentSurvivesACrash(t *testing.T) {
	for name, tt := range map[string]struct {
		carriedOut, repeated bool
		want                 state.JournalStatus
		copies               int
	}{
		"carried out":            {true, false, state.JournalApplied, 1},
		"not carried out":        {false, false, state.JournalRefused, 0},
		"and the client retried": {true, true, state.JournalApplied, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			s.settings.Timeout = 200 * time.Millisecond // a lease lasts three times as long
			dead := s.journal(s.open(t))
			call := attach(t, []string{"1"}, "crash", "content")
			_, err := dead.Begin(t.Context(), intent(call))
			must(t, err)
			dead.Close()
			if tt.carriedOut {
				must(t, call.Make(t.Context(), s.main, s.caller()).Err)
			}
			s.settings.Timeout = 5 * time.Second
			j := s.start(t)
			if tt.repeated {
				s.write(t, j, attach(t, []string{"1"}, "crash", "content"))
			}
			all := s.drained(t, state.JournalApplied, state.JournalRefused)
			if all[0].Status != tt.want || s.named(t, s.next, "1", "crash") != tt.copies || s.named(t, s.main, "1", "crash") != tt.copies {
				t.Errorf("got %+v and %d copies", all, s.named(t, s.next, "1", "crash"))
			}
		})
	}
}

// TestUnknownCreateThatTheTrackerHasChanged: trackers cut the path of a file name and long summaries. One that changes the content leaves an operator to decide.
func TestUnknownCreateThatTheTrackerHasChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(made *mapping.AttachmentCreate)
		want   state.JournalStatus
	}{
		"file name and summary": {func(*mapping.AttachmentCreate) {}, state.JournalApplied},
		"another file":          {func(made *mapping.AttachmentCreate) { made.FileName = new("le.txt") }, state.JournalParked},
		"another summary":       {func(made *mapping.AttachmentCreate) { made.Summary = new("long") }, state.JournalParked},
		"content": {func(made *mapping.AttachmentCreate) {
			made.Data = attach(t, nil, "", "other line ends").CreateAttachment.Data
		}, state.JournalParked},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			call := attach(t, []string{"1"}, strings.Repeat("long ", 60), "content")
			call.CreateAttachment.FileName = new(`C:\work\file.txt`)
			made := *call.CreateAttachment
			tt.change(&made)
			done := begin(t, j, intent(call))
			must(t, upstream.Call{Operation: call.Operation, CreateAttachment: &made}.Make(t.Context(), s.main, s.caller()).Err)
			done(t.Context(), upstream.Response{Err: errUnknown})
			if all := s.drained(t, state.JournalApplied, state.JournalParked, state.JournalRefused); all[0].Status != tt.want {
				t.Errorf("it is %s, want %s: %s", all[0].Status, tt.want, all[0].Reason)
			}
		})
	}
}

// TestAClientThatHangsUpLeavesNoIntent: it does so while its intent is committed. An intent that is not sent would park its lane.
func TestAClientThatHangsUpLeavesNoIntent(t *testing.T) {
	s := set(t)
	j, relay := s.relayed(t)
	relay.Delay.Store(int64(300 * time.Millisecond))
	ctx, hangUp := context.WithCancel(t.Context())
	begun := make(chan error, 1)
	go func() {
		_, err := j.Begin(ctx, intent(rename(1, "x")))
		begun <- err
	}()
	process.Eventually(t, "the intent is committed", func() bool {
		all, err := s.store.JournalOf(t.Context(), 1, true)
		must(t, err)
		return len(all) > 0
	})
	hangUp()
	if err := <-begun; err != nil {
		t.Errorf("the intent is committed, and the write is not sent: %v", err)
	}
}

// TestAWriteThatIsTooLateLeavesNoIntent: its time is over when the store has its intent, so it is not sent. An intent would park its lane.
func TestAWriteThatIsTooLateLeavesNoIntent(t *testing.T) {
	s := set(t)
	j, relay := s.relayed(t)
	relay.Delay.Store(int64(300 * time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := j.Begin(ctx, intent(rename(1, "x"))); !upstream.NotWritten(err) {
		t.Errorf("got %v, want that nothing is sent", err)
	}
	if all := s.drained(t); len(all) > 0 {
		t.Errorf("there is an intent: %+v", all)
	}
}

// TestACopyIsNoUnknownCreate: an attachment that a copy has just made at the tracker is not what the next create, whose outcome is unknown, may have made.
func TestACopyIsNoUnknownCreate(t *testing.T) {
	s := set(t)
	j := s.start(t)
	s.write(t, j, attach(t, []string{"1"}, "copied", "content"))
	s.drained(t, state.JournalApplied)
	back := intent(attach(t, []string{"1"}, "lost", "other content"))
	back.Target, back.Receiver = back.Receiver, back.Target
	begin(t, j, back)(t.Context(), upstream.Response{Err: errUnknown})
	if all := s.drained(t, state.JournalApplied, state.JournalRefused, state.JournalParked); all[1].Status != state.JournalRefused {
		t.Errorf("it is %s: %s", all[1].Status, all[1].Reason)
	}
}

// TestAnIntentThatIsNotSentKeepsItsContent: the store has committed it and could not say so. It is found out that nothing was carried out.
func TestAnIntentThatIsNotSentKeepsItsContent(t *testing.T) {
	s := set(t)
	s.settings.Timeout = time.Second // a lease lasts three times as long
	j, relay := s.relayed(t)
	s.write(t, j, rename(1, "x"))
	s.drained(t, state.JournalApplied)
	relay.CutAfter.Store(1)
	if _, err := j.Begin(t.Context(), intent(attach(t, []string{"1"}, "large", strings.Repeat("content", 1000)))); err == nil {
		t.Fatal("it was recorded")
	}
	if all := s.drained(t, state.JournalApplied, state.JournalRefused, state.JournalParked); len(all) != 2 || all[1].Status != state.JournalRefused {
		t.Errorf("got %+v", all)
	}
}

// TestOutcomeWaitsForTheStore: a PostgreSQL that starts again, and a connection that ends before it is known whether the outcome was committed, cost no outcome.
func TestOutcomeWaitsForTheStore(t *testing.T) {
	for name, disturb := range map[string]func(*process.Relay){
		"away": func(relay *process.Relay) {
			relay.Down(true)
			time.AfterFunc(6*time.Second, func() { relay.Down(false) })
		},
		"cut off": func(relay *process.Relay) { relay.CutAfter.Store(1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j, relay := s.relayed(t)
			call := rename(1, "x")
			done := begin(t, j, intent(call))
			response := call.Make(t.Context(), s.main, s.caller())
			must(t, response.Err)
			disturb(relay)
			done(t.Context(), response)
			if status, err := j.Status(t.Context()); err != nil || status.Late != 0 || status.Unresolved != 0 {
				t.Errorf("got %+v, %v", status, err)
			}
			s.drained(t, state.JournalApplied)
		})
	}
}

// TestUnknownFlagTypeIsReadBack: a create of a flag type whose response was lost is found at the target, and copied, or is not there.
func TestUnknownFlagTypeIsReadBack(t *testing.T) {
	for name, want := range map[string]state.JournalStatus{"carried out": state.JournalApplied, "lost": state.JournalRefused} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			s.settings.Settle = time.Millisecond
			j := s.start(t)
			call := createType("perhaps")
			done := begin(t, j, intent(call))
			if want == state.JournalApplied {
				must(t, call.Make(t.Context(), s.main, s.caller()).Err)
			}
			done(t.Context(), upstream.Response{Err: errUnknown})
			if all := s.drained(t, want); (all[0].Made != "") != (want == state.JournalApplied) {
				t.Errorf("it is read back as %+v", all[0])
			}
		})
	}
}

// TestOutcomeOfEachObject: what the response does not name was not written, and what is named twice is one object.
func TestOutcomeOfEachObject(t *testing.T) {
	types := &mapping.FlagTypeUpdate{Names: []string{"none"}, FlagTypeFields: mapping.FlagTypeFields{Description: new("d")}}
	for name, tt := range map[string]struct {
		call     upstream.Call
		response string
		pathWon  bool
		want     []state.JournalStatus
	}{
		"one attachment twice": {
			upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1, 1}, Summary: new("s")}},
			`{}`, false, []state.JournalStatus{state.JournalPending},
		},
		"no flag type":        {upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: types}, `{"flagtypes":[]}`, false, []state.JournalStatus{state.JournalRefused}},
		"the bug of the path": {attach(t, []string{"1", "2"}, "s", "c"), `{"ids":[70]}`, true, []state.JournalStatus{state.JournalPending, state.JournalRefused}},
		"one bug of two":      {attach(t, []string{"1", "2"}, "s", "c"), `{"ids":[70]}`, false, []state.JournalStatus{state.JournalParked, state.JournalParked}},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			must(t, s.operator().Start(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			done, err := j.Begin(ctx, intent(tt.call))
			must(t, err)
			document := mapping.NewDocument([]byte(tt.response))
			document.PathWon = tt.pathWon
			done(t.Context(), upstream.Response{Document: document})
			all, err := s.store.JournalOf(t.Context(), 10, true)
			must(t, err)
			var got []state.JournalStatus
			for _, e := range all {
				got = append(got, e.Status)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the entries are %v, want %v", got, tt.want)
			}
		})
	}
}

// TestUnknownCreateIsNotGuessed: an attachment that was there before is not what the create has made, and one of two may not be.
func TestUnknownCreateIsNotGuessed(t *testing.T) {
	for name, made := range map[string]int{"an old one": 0, "two new ones": 2} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			old := s.attachments(t, s.main, "1")[0]
			content, err := base64.StdEncoding.DecodeString(old.Data)
			must(t, err)
			call := attach(t, []string{"1"}, old.Summary, string(content))
			call.CreateAttachment.FileName = &old.FileName
			done := begin(t, j, intent(call))
			for range made {
				must(t, call.Make(t.Context(), s.main, s.caller()).Err)
			}
			before := len(s.attachments(t, s.next, "1"))
			done(t.Context(), upstream.Response{Err: errUnknown})
			if made == 0 {
				s.drained(t, state.JournalRefused)
			} else {
				all := s.drained(t, state.JournalParked)
				must(t, s.operator().Retry(t.Context(), all[0].Seq)) // it is looked for again
				s.drained(t, state.JournalParked)
			}
			if after := len(s.attachments(t, s.next, "1")); after != before {
				t.Errorf("%d copies are made", after-before)
			}
		})
	}
}

// TestUnknownCreateAtATrackerWithAWrongClock is not taken for one that was not carried out.
func TestUnknownCreateAtATrackerWithAWrongClock(t *testing.T) {
	s := set(t)
	s.clock.Store(new(time.Now().Add(-10 * time.Minute)))
	j := s.start(t)
	call := attach(t, []string{"1"}, "late", "content")
	done := begin(t, j, intent(call))
	must(t, call.Make(t.Context(), s.main, s.caller()).Err)
	done(t.Context(), upstream.Response{Err: errUnknown})
	s.drained(t, state.JournalParked)
}

// TestUnknownUpdateIsLeftToAPerson: an update whose outcome is unknown cannot be told from one that was overwritten.
func TestUnknownUpdateIsLeftToAPerson(t *testing.T) {
	s := set(t)
	s.main.fail(nil, firstTimes(1, errUnknown))
	j := s.start(t)
	call := rename(s.attachments(t, s.main, "1")[0].ID, "perhaps")
	s.make(t, j, intent(call))
	all := s.drained(t, state.JournalParked)
	if !strings.Contains(all[0].Reason, "not known whether main has carried it out") {
		t.Errorf("the reason is %q", all[0].Reason)
	}
	must(t, s.operator().Retry(t.Context(), all[0].Seq))
	s.drained(t, state.JournalApplied)
	if s.named(t, s.next, "1", "perhaps") != 1 {
		t.Error("it is not copied")
	}
}

// TestUnknownUpdateKeepsItsObject: until the target cannot carry it out any more, it would undo what comes after it.
func TestUnknownUpdateKeepsItsObject(t *testing.T) {
	s := set(t)
	s.settings.Settle = time.Hour
	j := s.start(t)
	all := s.attachments(t, s.main, "1")
	done := begin(t, j, intent(rename(all[0].ID, "perhaps")))
	done(t.Context(), upstream.Response{Err: errUnknown})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := j.Begin(ctx, intent(rename(all[0].ID, "later")))
	if refusal, ok := errors.AsType[*mapping.Error](err); !ok || refusal.Reason != upstream.ReasonJournal {
		t.Errorf("a later update of the same object may begin: %v", err)
	}
	s.write(t, j, rename(all[1].ID, "another object"))
}

// TestOneWriterForEachObject: two processes write the same attachment.
func TestOneWriterForEachObject(t *testing.T) {
	s := set(t)
	s.main.fail(func(upstream.Call) error { time.Sleep(5 * time.Millisecond); return nil }, nil)
	id := s.attachments(t, s.main, "1")[0].ID
	var all sync.WaitGroup
	for _, store := range []*state.Store{s.store, s.open(t)} {
		j := s.journal(store)
		t.Cleanup(j.Close)
		for range 4 {
			all.Go(func() {
				for range 3 {
					call := rename(id, "any")
					done, err := j.Begin(context.Background(), intent(call))
					if err != nil {
						t.Error(err)
						return
					}
					done(context.Background(), call.Make(context.Background(), s.main, s.caller()))
				}
			})
		}
	}
	all.Wait()
	if s.main.most != 1 {
		t.Errorf("%d writes of one object were under way at once", s.main.most)
	}
	if entries := s.drained(t, state.JournalApplied); len(entries) != 24 {
		t.Errorf("%d entries, want 24", len(entries))
	}
}

func TestNothingIsSentWithoutAnIntent(t *testing.T) {
	s := set(t)
	for _, bestEffort := range []bool{false, true} {
		s.settings.Mode = map[bool]string{true: "best-effort"}[bestEffort]
		store := s.open(t)
		j := s.journal(store)
		t.Cleanup(j.Close)
		must(t, store.Close())
		done, err := j.Begin(t.Context(), intent(attach(t, []string{"1"}, "x", strings.Repeat("large", 1000))))
		if !bestEffort { // a write that was refused keeps no other one waiting
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if _, again := j.Begin(ctx, intent(attach(t, []string{"1"}, "y", "small"))); again == nil || ctx.Err() != nil {
				t.Errorf("the next write of the bug: %v", again)
			}
			cancel()
		}
		refusal, _ := errors.AsType[*mapping.Error](err)
		switch {
		case bestEffort && err != nil:
			t.Errorf("a write does not pass: %v", err)
		case bestEffort: // only what may have been written counts
			for missed, outcome := range []error{journal.Unavailable(nil), nil} {
				done(t.Context(), upstream.Response{Err: outcome})
				if status, _ := j.Status(t.Context()); status.Missed != int64(missed) {
					t.Errorf("outcome %v: %d missed, want %d", outcome, status.Missed, missed)
				}
			}
		case refusal == nil || refusal.Reason != upstream.ReasonJournal || refusal.Status != 503 || refusal.RetryAfter <= 0 || !upstream.NotWritten(err):
			t.Errorf("got %v", err)
		}
		left, err := os.ReadDir(s.settings.Spool)
		if must(t, err); len(left) != 0 {
			t.Errorf("the content is left: %v", left)
		}
	}
}

// TestRefusedWriteIsNotCopied also finds that its content goes, and its entries: nothing grows with the writes of a client with an invalid key.
func TestRefusedWriteIsNotCopied(t *testing.T) {
	s := set(t)
	j := s.start(t)
	call := attach(t, []string{"99999", "99998"}, "no bug", strings.Repeat("large", 1000))
	s.make(t, j, intent(call))
	if all, err := s.store.JournalOf(t.Context(), 10, true); err != nil || len(all) != 0 {
		t.Errorf("entries are left: %+v, %v", all, err)
	}
	if left, err := os.ReadDir(s.settings.Spool); err != nil || len(left) != 0 {
		t.Errorf("the content is left: %v, %v", left, err)
	}
}

// TestContentIsSpooledOnce: the entries of one write share its content until the last one is copied.
func TestContentIsSpooledOnce(t *testing.T) {
	for name, length := range map[string]int{"large": 5000, "small, but not for all entries together": 1000} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			s.settings.Workers = 1 // copies made in another order get other ids
			j := s.start(t)
			bugs := []string{"1", "2", "3"}
			call := attach(t, bugs, "shared", strings.Repeat("x", length/4*3))
			done := begin(t, j, intent(call))
			if files, err := os.ReadDir(s.settings.Spool); err != nil || len(files) != 1 {
				t.Errorf("there are %v in the spool, want one file (%v)", files, err)
			}
			done(t.Context(), call.Make(t.Context(), s.main, s.caller()))
			s.drained(t, state.JournalApplied)
			for _, bug := range bugs {
				if s.named(t, s.next, bug, "shared") != 1 {
					t.Errorf("bug %s has no copy", bug)
				}
			}
			if files, err := os.ReadDir(s.settings.Spool); err != nil || len(files) != 0 {
				t.Errorf("%v is left in the spool (%v)", files, err)
			}
		})
	}
}

// TestWhatIsOldGoes: finished entries after keep, and files that no entry names. What waits stays, however old it is.
func TestWhatIsOldGoes(t *testing.T) {
	s := set(t)
	first := s.journal(s.store)
	large := strings.Repeat("x", 5000)
	s.write(t, first, attach(t, []string{"1"}, "copied", large))
	s.drained(t, state.JournalApplied)
	must(t, s.operator().Start(t.Context()))
	s.write(t, first, attach(t, []string{"1"}, "waits", large))
	first.Close()
	files := func() (names []string) {
		all, err := os.ReadDir(s.settings.Spool)
		must(t, err)
		for _, file := range all {
			names = append(names, file.Name())
		}
		return names
	}
	spooled := files()
	for _, name := range append(spooled, "00.spool", "00.other", "01.spool") {
		path := filepath.Join(s.settings.Spool, name)
		file, err := os.OpenFile(path, os.O_CREATE, 0o600)
		must(t, err)
		must(t, file.Close())
		if name != "01.spool" { // whose entry may not be recorded yet
			must(t, os.Chtimes(path, time.Time{}, time.Now().Add(-2*time.Hour)))
		}
	}
	s.settings.Keep = time.Microsecond
	s.start(t)
	process.Eventually(t, "a file goes", func() bool { return len(files()) == 3 })
	if want := slices.Sorted(slices.Values(append(spooled, "00.other", "01.spool"))); !slices.Equal(files(), want) {
		t.Errorf("the spool has %q, want %q", files(), want)
	}
	if all := s.drained(t, state.JournalPending); len(all) != 1 {
		t.Errorf("the journal has %+v", all)
	}
	must(t, s.operator().Resume(t.Context()))
	s.drained(t, state.JournalApplied)
	if s.named(t, s.next, "1", "waits") != 1 {
		t.Error("what waited is not copied")
	}
}

// TestWriteTooLongToBeRecorded: each object has an entry with the whole request, so that a short request could fill the store.
func TestWriteTooLongToBeRecorded(t *testing.T) {
	s := set(t)
	j := s.start(t)
	call := rename(1, strings.Repeat("x", 60_000))
	for id := range int64(1000) {
		call.UpdateAttachments.IDs = append(call.UpdateAttachments.IDs, id+2)
	}
	for _, mode := range []string{"required", "best-effort"} {
		s.settings.Mode = mode
		j.Set(s.settings)
		_, err := j.Begin(t.Context(), intent(call))
		if refusal, ok := errors.AsType[*mapping.Error](err); !ok || refusal.Status != 413 || refusal.Reason != mapping.ReasonTooLarge || !upstream.NotWritten(err) {
			t.Errorf("%s: got %v", mode, err)
		}
	}
	if all, err := s.store.JournalOf(t.Context(), 10, true); err != nil || len(all) != 0 {
		t.Errorf("entries are left: %+v, %v", all, err)
	}
}

// TestKeysAreRotated: what was encrypted with an older key is copied, and without it the lane is parked.
func TestKeysAreRotated(t *testing.T) {
	s := set(t)
	first := s.start(t)
	must(t, s.operator().Start(t.Context()))
	s.write(t, first, attach(t, []string{"1"}, "rotated", strings.Repeat("large", 1000)))
	first.Close()
	must(t, s.operator().Resume(t.Context()))
	var err error
	s.settings.Keys, err = journal.NewKeys([]byte("the second key of the journal"))
	must(t, err)
	j := s.start(t)
	all := s.drained(t, state.JournalParked)
	if !strings.Contains(all[0].Reason, "its key is not among") {
		t.Errorf("the reason is %q", all[0].Reason)
	}
	s.settings.Keys, err = journal.NewKeys([]byte("the second key of the journal"), []byte("the first key of the journal"))
	must(t, err)
	j.Set(s.settings)
	must(t, s.operator().Retry(t.Context(), all[0].Seq))
	s.drained(t, state.JournalApplied)
	if _, err := journal.NewKeys([]byte("short")); err == nil {
		t.Error("a short key is accepted")
	}
}

// TestAKeyThatAnotherProcessKnows: while a key is rotated, a process that does not know the new one yet parks nothing.
func TestAKeyThatAnotherProcessKnows(t *testing.T) {
	s := set(t)
	s.settings.MaxFailures = 10
	j := s.start(t)
	must(t, s.operator().Start(t.Context()))
	var err error
	s.settings.Keys, err = journal.NewKeys([]byte("the second key of the journal"), []byte("the first key of the journal"))
	must(t, err)
	rotated := s.journal(s.open(t))
	s.write(t, rotated, attach(t, []string{"1"}, "rotated", "content"))
	rotated.Close()
	must(t, s.operator().Resume(t.Context()))
	process.Eventually(t, "the key is not known", func() bool {
		all, err := s.store.JournalOf(t.Context(), 10, false)
		return err == nil && len(all) == 1 && all[0].Status == state.JournalPending && strings.Contains(all[0].Reason, "its key is not among")
	})
	j.Close()
	s.start(t)
	s.drained(t, state.JournalApplied)
}

// TestDamagedContentIsParked: a file that was changed or cut off is never copied.
func TestDamagedContentIsParked(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"changed": func(text []byte) []byte { text[len(text)-3] ^= 1; return text },
		"cut off": func(text []byte) []byte { return text[:70_000] },
		"a chunk is missing": func(text []byte) []byte {
			length := 4 + int(text[0])<<24 + int(text[1])<<16 + int(text[2])<<8 + int(text[3])
			return text[:length]
		},
		"two chunks change places": func(text []byte) []byte {
			length := 4 + int(text[0])<<24 + int(text[1])<<16 + int(text[2])<<8 + int(text[3])
			return slices.Concat(text[length:2*length], text[:length], text[2*length:])
		},
		"gone": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			must(t, s.operator().Start(t.Context()))
			s.write(t, j, attach(t, []string{"1"}, "damaged", strings.Repeat("large", 100_000)))
			files, err := filepath.Glob(filepath.Join(s.settings.Spool, "*"))
			must(t, err)
			text, err := os.ReadFile(files[0])
			must(t, err)
			if text = damage(text); text == nil {
				must(t, os.Remove(files[0]))
			} else {
				must(t, os.WriteFile(files[0], text, 0o600))
			}
			must(t, s.operator().Resume(t.Context()))
			s.drained(t, state.JournalParked)
			if s.named(t, s.next, "1", "damaged") != 0 {
				t.Error("it was copied")
			}
		})
	}
}
