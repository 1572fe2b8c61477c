package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// TestOutlookNamesWhatIsLost: each reason by itself makes a move of writes unsafe, for the rules that it concerns.
func TestOutlookNamesWhatIsLost(t *testing.T) {
	entry := state.JournalEntry{Seq: 7, Operation: mapping.OpUpdateAttachments, Lane: "attachment 9", Receiver: "main", Rule: "shop", Reason: "no such user", Status: state.JournalParked}
	open := entry
	open.Status = state.JournalBegun
	waiting := state.JournalCount{Rule: "shop", Receiver: "main", Status: state.JournalPending, Entries: 30}
	another := entry
	another.Rule = "rest"
	blocked := waiting
	blocked.Blocked = true
	stopped := waiting
	stopped.Status = state.JournalBegun
	loss := func(kind, rule string) journal.Status {
		return journal.Status{Losses: []state.JournalLoss{{Receiver: "main", Kind: kind, Rule: rule, What: "POST /rest/bug", Entries: 4}}}
	}
	scope := journal.Scope{Rule: "shop", Rules: []string{"shop", "rest"}, Receiver: "main", Replicates: true}
	for name, tt := range map[string]struct {
		status journal.Status
		change func(*journal.Scope)
		want   journal.OutlookState
		says   string
	}{
		"nothing":              {want: journal.OutlookSafe, says: "safe"},
		"entries that wait":    {status: journal.Status{Rules: []state.JournalCount{waiting}}, want: journal.OutlookDrain, says: "safe after draining 30 entries (about 3 s)"},
		"many copied a second": {status: journal.Status{Rules: []state.JournalCount{waiting}, Rate: 100}, want: journal.OutlookDrain, says: "about 1 s"},
		"copying is paused":    {status: journal.Status{Rules: []state.JournalCount{waiting}, Paused: true}, want: journal.OutlookUnsafe, says: "until copying is resumed (30 writes)"},
		"behind a parked one":  {status: journal.Status{Rules: []state.JournalCount{blocked}}, want: journal.OutlookUnsafe, says: "behind parked entries"},
		"parked":               {status: journal.Status{Stopped: []state.JournalEntry{entry}}, want: journal.OutlookUnsafe, says: "parked entry 7: attachment.update of attachment 9: no such user"},
		"parked of another":    {status: journal.Status{Stopped: []state.JournalEntry{another}}, want: journal.OutlookSafe},
		"unknown":              {status: journal.Status{Stopped: []state.JournalEntry{open}}, want: journal.OutlookUnsafe, says: "unknown entry 7"},
		"unknown, not listed":  {status: journal.Status{Rules: []state.JournalCount{stopped}}, want: journal.OutlookUnsafe, says: "unknown entries that are not listed (30 writes)"},
		"skipped":              {status: loss(state.LossSkipped, "shop"), want: journal.OutlookUnsafe, says: "skipped POST"},
		"missed":               {status: loss(state.LossMissed, "shop"), want: journal.OutlookUnsafe, says: "missed"},
		"unrecorded":           {status: loss(state.LossUnrecorded, "shop"), want: journal.OutlookUnsafe, says: "unrecorded"},
		"passed":               {status: loss(state.LossPassed, ""), want: journal.OutlookUnsafe, says: "passed POST /rest/bug (4 writes)"},
		"passed and copied":    {status: loss(state.LossPassed, ""), change: func(s *journal.Scope) { s.PassedCopied = true }, want: journal.OutlookSafe},
		"of another rule":      {status: loss(state.LossMissed, "rest"), want: journal.OutlookSafe},
		"of a rule that is gone": {
			status: loss(state.LossMissed, "former"), want: journal.OutlookUnsafe,
		},
		"of the other direction": {status: loss(state.LossMissed, "shop"), change: func(s *journal.Scope) { s.Receiver = "next" }, want: journal.OutlookSafe},
		"a rule without copies":  {change: func(s *journal.Scope) { s.Replicates = false }, want: journal.OutlookUnknown, says: "does not copy"},
	} {
		scope := scope
		if tt.change != nil {
			tt.change(&scope)
		}
		if o := tt.status.Outlook(scope); o.State != tt.want || !strings.Contains(o.String(), tt.says) {
			t.Errorf("%s: %s, %q", name, o.State, o)
		}
	}
	if o := (*journal.Status)(nil).Outlook(scope); o.State != journal.OutlookUnknown {
		t.Errorf("without a journal: %v", o)
	}
}

// TestNothingIsSafeWithoutTheStore: while the journal cannot be read, no status says that going back is safe, and the log has one line of it.
func TestNothingIsSafeWithoutTheStore(t *testing.T) {
	server := process.PostgresServer(t)
	s := set(t)
	s.dsn, s.settings.Mode = server.DSN, "best-effort"
	s.store = s.open(t)
	j := s.start(t)
	scope := journal.Scope{Rule: "all", Rules: []string{"all"}, Receiver: "next", Replicates: true}
	comes := func(want journal.OutlookState) {
		t.Helper()
		process.Eventually(t, "the outlook is "+string(want), func() bool { return j.Last().Outlook(scope).State == want })
	}
	comes(journal.OutlookSafe)
	server.End()
	if status, err := j.Status(t.Context()); err == nil || status.Outlook(scope).State != journal.OutlookUnknown {
		t.Errorf("without the store it is %q (%v)", status.Outlook(scope), err)
	}
	comes(journal.OutlookUnknown)
	must(t, server.Begin())
	comes(journal.OutlookSafe)
	server.End()
	j.Lose(t.Context(), state.JournalLoss{Receiver: "next", Kind: state.LossPassed, What: "POST /rest/bug"})(true)
	s.make(t, j, intent(attach(t, []string{"1"}, "not recorded", "x")))
	process.Eventually(t, "the status counts a write that was not recorded", func() bool { return j.Last().Missed == 1 })
	must(t, server.Begin())
	comes(journal.OutlookUnsafe) // what was lost meanwhile is not forgotten
	if lines := strings.Count(s.log.String(), "cannot be read"); lines < 1 || lines > 4 {
		t.Errorf("the store was away twice, and the log has %d lines of it: %s", lines, &s.log)
	}
}

// TestLossesAreKnownBeforeTheResponse: each way by which a write is not copied is in the store when the client has its response, and forgotten by a start.
func TestLossesAreKnownBeforeTheResponse(t *testing.T) {
	s := set(t)
	j := s.start(t)
	intended := intent(rename(1, "x"))
	intended.Unrecorded = true
	done := begin(t, j, intended)
	passed := state.JournalLoss{Receiver: "next", Kind: state.LossPassed, What: "POST /rest/bug"}
	over := j.Lose(t.Context(), passed)
	begun, err := s.lost(t) // what a process leaves that is killed now
	if must(t, err); len(begun) != 2 || !strings.Contains(begun[0].What, "outcome is not known") || !strings.Contains(begun[1].What, "outcome is not known") {
		t.Errorf("before they are sent: %+v", begun)
	}
	over(false)
	done(t.Context(), upstream.Response{Err: &mapping.Error{Status: 400}})
	if losses, err := s.lost(t); len(losses) != 0 || err != nil {
		t.Errorf("a refused write is lost: %+v, %v", losses, err)
	}
	begin(t, j, intended)(t.Context(), upstream.Response{Err: errUnknown})
	j.Lose(t.Context(), passed)(true)
	losses, err := s.lost(t)
	if must(t, err); len(losses) != 2 || losses[0].Entries != 1 || losses[1].Entries != 1 {
		t.Fatalf("got %+v", losses)
	}
	status, err := j.Status(t.Context())
	must(t, err)
	scope := journal.Scope{Rule: "all", Rules: []string{"all"}, Receiver: "next", Replicates: true}
	if o := status.Outlook(scope); o.State != journal.OutlookUnsafe || len(o.Lost) != 2 {
		t.Errorf("got %+v", o)
	}
	must(t, s.operator().Start(t.Context()))
	if status, err = j.Status(t.Context()); err != nil || status.Outlook(scope).State != journal.OutlookSafe || !status.Paused {
		t.Errorf("after a start: %+v, %v", status, err)
	}
}

// TestLossesOfManyWritesAreKnownBeforeTheyAreSent: a write whose count another one stores waits for it.
func TestLossesOfManyWritesAreKnownBeforeTheyAreSent(t *testing.T) {
	s := set(t)
	j := s.start(t)
	var all sync.WaitGroup
	for i := range 90 {
		all.Go(func() {
			loss := state.JournalLoss{Receiver: "next", Kind: state.LossPassed, What: fmt.Sprintf("POST /%d", i)}
			over := j.Lose(t.Context(), loss)
			begun, err := s.lost(t)
			if !slices.ContainsFunc(begun, func(one state.JournalLoss) bool { return strings.HasPrefix(one.What, loss.What+",") }) || err != nil {
				t.Errorf("%s is sent before it is counted (%v)", loss.What, err)
			}
			over(i%2 == 0)
		})
	}
	all.Wait()
	counted, err := s.lost(t)
	must(t, err)
	for _, one := range counted {
		if one.Entries != 1 || strings.Contains(one.What, ",") {
			t.Errorf("in the end there is %+v", one)
		}
	}
	if len(counted) != 45 {
		t.Errorf("%d writes are lost, want 45", len(counted))
	}
}

// TestALostIntentIsALoss: the store has failed over to a copy without the last changes while a write was under way.
func TestALostIntentIsALoss(t *testing.T) {
	for name, want := range map[string]journal.OutlookState{"carried out": journal.OutlookUnsafe, "refused": journal.OutlookSafe} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			j := s.start(t)
			call := rename(1, "x")
			done := begin(t, j, intent(call))
			response := upstream.Response{Err: mapping.Refuse(mapping.CodeBadKey, "no such key")}
			if want == journal.OutlookUnsafe {
				response = call.Make(t.Context(), s.main, s.caller())
				must(t, response.Err)
			}
			all, err := s.store.JournalOf(t.Context(), 10, true)
			must(t, err)
			all[0].Status = state.JournalRefused
			must(t, s.store.EndJournal(t.Context(), "the copy", all)) // which leaves nothing
			done(t.Context(), response)
			status, err := j.Status(t.Context())
			must(t, err)
			if got := status.Outlook(journal.Scope{Rule: "all", Rules: []string{"all"}, Receiver: "next", Replicates: true}); got.State != want {
				t.Errorf("going back is %v, want %s", got, want)
			}
		})
	}
}

// lost are the losses in the store.
func (s *scene) lost(t *testing.T) ([]state.JournalLoss, error) {
	all, err := s.store.JournalOverview(t.Context(), 100)
	return all.Losses, err
}
