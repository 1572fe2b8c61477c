package switchover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// patience is how long nothing should take, however busy the machine is.
const patience = 20 * time.Second

// beside does something beside the test, and gives its error.
func beside(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

// holding has a write of bug 1 be under way at a tracker, and gives what ends it.
func (b *bench) holding(t *testing.T, at *fake) (end func()) {
	t.Helper()
	at.hold, at.begun = make(chan struct{}), make(chan struct{}, 1)
	first := beside(func() error {
		return attachTo("1").Make(context.WithoutCancel(t.Context()), b.Switchover, caller("a")).Err
	})
	<-at.begun
	return func() {
		close(at.hold)
		if err := <-first; err != nil {
			t.Error(err)
		}
	}
}

// later makes a call beside others, and gives its error.
func (b *bench) later(t *testing.T, call upstream.Call) <-chan error {
	ctx := patient(t, patience)
	return beside(func() error { return call.Make(ctx, b.Switchover, caller("b")).Err })
}

// soon is do for a call that nothing may hold up.
func (b *bench) soon(t *testing.T, key string, call upstream.Call) {
	t.Helper()
	if answer := call.Make(patient(t, patience), b.Switchover, caller(key)); answer.Err != nil {
		t.Error(answer.Err)
	}
}

// wantLater wants that a write may be tried again, and was not sent.
func wantLater(t *testing.T, err error, says string) {
	t.Helper()
	said, ok := errors.AsType[*mapping.Error](err)
	if !ok || said.Status != 503 || said.Reason != mapping.ReasonSwitchover || said.RetryAfter == 0 || !upstream.NotSent(err) || !strings.Contains(said.Message, says) {
		t.Errorf("got %v, want a refusal that says %q", err, says)
	}
}

// wantBarrier wants that writes were not moved, and that the rules are those of the old tracker.
func (b *bench) wantBarrier(t *testing.T, err error, says string) {
	t.Helper()
	if _, ok := errors.AsType[*BarrierError](err); !ok || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want that writes are not moved: %s", err, says)
	}
	if status := b.Status(); status.Moving != nil || status.Table.Rules[len(status.Table.Rules)-1].Writes != PhaseOld {
		t.Errorf("the rules are %+v", status)
	}
	b.old.failing(nil)
	b.soon(t, "c", attachTo("9"))
}

// TestWritesThatMoveWaitForEachOther: nothing is written at the new tracker while a write that moves is under way at the old one, in any process.
func TestWritesThatMoveWaitForEachOther(t *testing.T) {
	p1 := Rule{Name: "p1", Products: []string{"P1"}, Reads: PhaseNew, Writes: PhaseOld}
	next := p1
	next.Writes = PhaseNew
	rules, after := []Rule{p1, always(PhaseOld, PhaseOld)}, []Rule{next, always(PhaseOld, PhaseOld)}
	for name, move := range map[string]func(ctx context.Context, b *bench) error{
		"a change": func(ctx context.Context, b *bench) error { return b.try(ctx, after...) },
		"a reload": func(ctx context.Context, b *bench) error {
			settings := b.options.Settings
			settings.Table.Rules = after
			return b.Set(ctx, settings)
		},
		"another process": func(ctx context.Context, b *bench) error {
			options := b.options
			options.Settings.Table.Rules = after
			other, err := New(ctx, options)
			if err == nil {
				other.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBenchOver(t, openStore(t, ":memory:"), 5*time.Millisecond, rules...)
			end := b.holding(t, b.old)
			ctx := patient(t, patience)
			moved := beside(func() error { return move(ctx, b) })
			process.Eventually(t, "the beginning of the move", func() bool { return slices.Equal(b.Status().Moving, []string{"p1"}) })
			second := b.later(t, attachTo("1"))
			b.old.mu.Lock()
			hold := b.old.hold
			b.old.hold = nil
			b.old.mu.Unlock()
			b.soon(t, "c", attachTo("2"))
			if len(moved)+len(second) > 0 || len(b.new.taken()) > 0 {
				t.Error("writes were moved while one was under way")
			}
			b.old.hold = hold
			end()
			must(t, errors.Join(<-moved, <-second))
			if calls := b.new.taken(); len(calls) != 1 {
				t.Errorf("the new tracker got %d writes, want 1", len(calls))
			}
		})
	}
}

// TestARevivalMovesWrites: those that the kill switch has sent to the old tracker end first, and what the old tracker lacks is known.
func TestARevivalMovesWrites(t *testing.T) {
	store := openDisturbed(t)
	for range 3 {
		store.uncopied("old")
	}
	store.uncopied("new")
	must(t, store.AddJournalLosses(t.Context(), []state.JournalLoss{
		{Receiver: "old", Rule: "rest", Kind: state.LossSkipped, What: "entry 7", Entries: 1, Last: time.Now()},
		{Receiver: "new", Rule: "rest", Kind: state.LossMissed, What: "attachment.create", Entries: 2, Last: time.Now()},
	}))
	b := openBenchOver(t, store.Store, 5*time.Millisecond, Rule{Name: "p9", Products: []string{"P9"}, Reads: PhaseNew, Writes: PhaseNew, Replicate: true}, always(PhaseNew, PhaseNew))
	b.set(t, func(s *Settings) { s.Journal = slowJournal{} })
	must(t, b.Kill(t.Context(), "ann", "it burns"))
	missing := strings.Join(b.Status().Killed.Missing, "\n")
	if all, _ := store.JournalOverview(t.Context(), 0); !all.Paused || !b.Status().CopyingPaused || missing != "rule \"rest\": writes that are not copied from new: at least 3\nskipped entry 7, never copied: at least 1\nrule \"rest\": all writes at new, which are not copied" {
		t.Errorf("copying is paused: %v; what is missing: %q", all.Paused, missing)
	}
	err := b.Revive(t.Context(), "ann", "it is out")
	if _, ok := errors.AsType[*BarrierError](err); !ok || !strings.Contains(err.Error(), "journal resume") || b.Status().Killed == nil {
		t.Errorf("writes that are not copied: %v", err)
	}
	store.pause(false)
	end := b.holding(t, b.old)
	ctx := patient(t, patience)
	revived := beside(func() error { return b.Revive(ctx, "ann", "it is out") })
	process.Eventually(t, "the beginning of the revival", func() bool { return b.Status().Moving != nil })
	end()
	if len(revived) > 0 {
		t.Error("the revival did not wait for the journal")
	}
	store.exec("DELETE FROM portico_journal WHERE receiver = 'new'")
	if err := <-revived; err != nil || b.Status().Killed != nil {
		t.Error(err)
	}
}

// TestAWriteIsHeldForAWhileOnly.
func TestAWriteIsHeldForAWhileOnly(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseOld))
	b.timing.hold = 30 * time.Millisecond
	end := b.holding(t, b.old)
	ctx := patient(t, patience)
	moved := beside(func() error { return b.try(ctx, always(PhaseNew, PhaseNew)) })
	process.Eventually(t, "the beginning of the move", func() bool { return b.Status().Moving != nil })
	wantLater(t, attachTo("2").Make(t.Context(), b.Switchover, caller("b")).Err, "is being moved")
	end()
	if err := <-moved; err != nil {
		t.Error(err)
	}
}

// TestAMoveThatCannotEndIsTakenBack, and says what it waits for.
func TestAMoveThatCannotEndIsTakenBack(t *testing.T) {
	lost := &mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonTimeout, Unknown: true, Message: "lost"}
	for name, c := range map[string]struct {
		says    string
		prepare func(t *testing.T, b *bench, store *disturbed)
	}{
		"a process that does not report": {"not ended writes that move: stuck", func(t *testing.T, _ *bench, store *disturbed) {
			must(t, store.Beat(t.Context(), "stuck", 1, time.Hour))
		}},
		"a write that is not copied": {"writes that are not copied to the other tracker: 1", func(_ *testing.T, _ *bench, store *disturbed) { store.uncopied("new") }},
		"copying is paused": {"portico migrate journal resume", func(_ *testing.T, b *bench, store *disturbed) {
			b.timing.barrier = time.Hour // as below
			store.uncopied("new")
			store.pause(true)
		}},
		"a lane that is parked meanwhile": {"1 lanes of the journal wait for an operator", func(_ *testing.T, b *bench, store *disturbed) {
			b.timing.barrier = time.Hour // which it does not wait
			store.exec("CREATE TRIGGER parks AFTER UPDATE ON portico_leases BEGIN " + addEntry + " VALUES ('bug 9', 'x', 'x', 'new', 'rest', '', 'parked', 0); END")
		}},
		"an unknown outcome": {"whose outcome is unknown, until 2027-01-15T08:01:00Z", func(t *testing.T, b *bench, _ *disturbed) {
			b.old.failing(lost)
			_ = attachTo("1").Make(t.Context(), b.Switchover, caller("a"))
		}},
		"a client that hung up": {"whose outcome is unknown", func(t *testing.T, b *bench, _ *disturbed) {
			b.old.failing(context.Canceled)
			_ = attachTo("1").Make(t.Context(), b.Switchover, caller("a"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := openDisturbed(t)
			b := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseOld))
			b.timing.barrier = 200 * time.Millisecond
			c.prepare(t, b, store)
			b.wantBarrier(t, b.try(t.Context(), always(PhaseNew, PhaseNew)), c.says)
		})
	}
}

// TestAMoveParksWhatWaitsBehindParkedEntries of its rules and of those that are gone, entry by entry. It waits for no others.
func TestAMoveParksWhatWaitsBehindParkedEntries(t *testing.T) {
	store := openDisturbed(t)
	next := Rule{Name: "p1", Products: []string{"P1"}, Reads: PhaseNew, Writes: PhaseOld}
	b := openBenchOver(t, store.Store, time.Hour, next, always(PhaseNew, PhaseOld))
	for _, entry := range []string{
		"'bug 9', 'x', 'x', 'new', 'p1', '', 'parked'", "'bug 9', 'x', 'x', 'new', 'several rules', '', 'pending'", "'bug 9', 'x', 'x', 'old', 'p1', '', 'pending'",
		"'bug 8', 'x', 'x', 'new', 'rest', '', 'parked'", "'bug 8', 'x', 'x', 'new', 'rest', '', 'pending'", "'bug 7', 'x', 'x', 'new', 'rest', '', 'pending'",
	} {
		store.exec(addEntry + " VALUES (" + entry + ", 0)")
	}
	next.Writes = PhaseNew
	b.change(t, next, always(PhaseNew, PhaseOld))
	entries, err := store.JournalOf(t.Context(), 9, true)
	must(t, err)
	for i, e := range entries {
		if want := []bool{true, true, false, true, false, false}[i]; want != (e.Status == state.JournalParked) {
			t.Errorf("entry %d is %s: %s", e.Seq, e.Status, e.Reason)
		}
	}
	if !strings.Contains(entries[1].Reason, "compare both trackers") {
		t.Errorf("the reason is %q", entries[1].Reason)
	}
}

// TestRulesReplicateOnlyWithAJournal, or each of their writes would be refused.
func TestRulesReplicateOnlyWithAJournal(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseOld))
	next := always(PhaseNew, PhaseOld)
	next.Replicate = true
	invalid, ok := errors.AsType[*InvalidError](b.try(t.Context(), next))
	if !ok || invalid.Problems[0].Field != "replicate" || !strings.Contains(invalid.Error(), "switchover.journal") {
		t.Errorf("without a journal: %v", invalid)
	}
	b.set(t, func(s *Settings) { s.Journal = slowJournal{} })
	b.change(t, next)
	// Two callers must not write one object to two trackers, in none of the ways in which rules come.
	for field, rule := range map[string]Rule{
		"callers": {Callers: []string{"ci"}}, "user_agents": {UserAgents: []string{"x*"}}, "percent": {Percent: new(10.0)},
		"operations": {Operations: []mapping.Operation{mapping.OpUpdateAttachments}},
	} {
		rule.Name, rule.Reads, rule.Writes = "apart", PhaseNew, PhaseOld
		settings := b.settings
		settings.Table = Table{Rules: []Rule{rule, next}}
		for way, err := range map[string]error{
			"a change": b.try(t.Context(), rule, next), "a reload": b.Set(t.Context(), settings),
		} {
			if invalid, ok := errors.AsType[*InvalidError](err); !ok || invalid.Problems[0].Field != field || !strings.Contains(err.Error(), "only product, component, bugs and attachments") {
				t.Errorf("%s with %s: %v", way, field, err)
			}
		}
		rule.Operations = []mapping.Operation{mapping.OpAttachment}
		if found := faults(Table{Rules: []Rule{rule, next}}.Problems([]string{"ci"})); len(found) > 0 {
			t.Errorf("%s decide reads only: %v", field, found)
		}
	}
}

// TestAWriteOfARuleThatReplicatesIsRecorded also where nothing else depends on which rule decides. Where that is not known, it counts for every rule.
func TestAWriteOfARuleThatReplicatesIsRecorded(t *testing.T) {
	first, last := Rule{Name: "p1", Products: []string{"P1"}, Reads: PhaseOld, Writes: PhaseOld, Replicate: true}, always(PhaseOld, PhaseOld)
	replicating := last
	replicating.Replicate = true
	for _, c := range []struct {
		last      Rule
		bug, want string
	}{
		{last, "1", "p1"}, {last, "2", ""}, {last, "77", "p1"}, // the product of bug 77 is not known
		{replicating, "1", "several rules"}, {replicating, "2", "several rules"},
	} {
		b, recorded := openBench(t, first, c.last), ""
		b.set(t, func(s *Settings) { s.Journal = slowJournal{func(intent journal.Intent) { recorded += intent.Rule }} })
		if b.soon(t, "k", attachTo(c.bug)); recorded != c.want {
			t.Errorf("a write of bug %s is recorded for %q, want %q", c.bug, recorded, c.want)
		}
	}
}

// asked is a tracker that tells whether the context of a call ends while it is made.
type asked struct {
	*fake
	wait  time.Duration
	ended chan error
}

// Do implements upstream.Tracker.
func (a *asked) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	reply, err := a.fake.Do(ctx, caller, call)
	select {
	case <-ctx.Done():
	case <-time.After(a.wait):
	}
	a.ended <- ctx.Err()
	return reply, err
}

// TestARecordedWriteOutlivesItsClient, or the object would take no other write until the outcome is known. The end of the server ends it.
func TestARecordedWriteOutlivesItsClient(t *testing.T) {
	for name, c := range map[string]struct{ recorded, stop, ends bool }{
		"recorded": {true, false, false}, "recorded, at the end": {true, true, true}, "not recorded": {false, false, true},
	} {
		rule := always(PhaseOld, PhaseOld)
		rule.Replicate = c.recorded
		b := openBench(t, rule)
		slow := &asked{b.old, 20 * time.Millisecond, make(chan error, 1)}
		if c.ends {
			slow.wait = time.Minute // a context that ends does so long before
		}
		b.set(t, func(s *Settings) {
			s.Trackers, s.Journal = map[string]upstream.Tracker{"old": slow, "new": b.new}, slowJournal{}
		})
		b.old.hold, b.old.begun = make(chan struct{}), make(chan struct{}, 1)
		server, stop := context.WithCancel(t.Context())
		defer stop()
		ctx, hangUp := context.WithTimeout(upstream.WithServer(server, nil), time.Hour)
		go attachTo("1").Make(ctx, b.Switchover, caller("a"))
		<-b.old.begun
		hangUp()
		if c.stop {
			stop()
		}
		close(b.old.hold)
		if err := <-slow.ended; (err != nil) != c.ends {
			t.Errorf("%s: the call has ended with %v", name, err)
		}
	}
}

// TestCertainFailuresDelayNoMove, nor do those whose outcome the journal finds out.
func TestCertainFailuresDelayNoMove(t *testing.T) {
	for name, c := range map[string]struct {
		err       error
		replicate bool
	}{"refused": {&mapping.Error{Code: 100, Status: 400, Message: "no"}, false}, "never sent": {errDown, false}, "recorded": {context.Canceled, true}} {
		rule := always(PhaseNew, PhaseOld)
		rule.Replicate = c.replicate
		b := openBench(t, rule)
		b.set(t, func(s *Settings) { s.Journal = slowJournal{} })
		b.old.failing(c.err)
		if err := attachTo("1").Make(t.Context(), b.Switchover, caller("a")).Err; err == nil {
			t.Fatal("the write did not fail")
		}
		if err := b.try(t.Context(), always(PhaseNew, PhaseNew)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestABarrierOfAProcessThatHasEndedIsTakenBack by those that have seen it for a while.
func TestABarrierOfAProcessThatHasEndedIsTakenBack(t *testing.T) {
	store := openStore(t, ":memory:")
	b := openBenchOver(t, store, 5*time.Millisecond, always(PhaseNew, PhaseOld))
	table := b.Status().Table
	table.Moving = []string{"rest"}
	text, _ := json.Marshal(table)
	present, _ := store.CurrentRevision(t.Context())
	if _, err := store.Revise(t.Context(), present.Version, state.Revision{Base: present.Base, Table: text}, ""); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, "the barrier", func() bool { return b.Status().Moving != nil })
	waiting := b.later(t, attachTo("1"))
	for end := time.Now().Add(patience); b.Status().Moving != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		b.clock.pass(b.timing.lease / 10) // some of it before the process sees the barrier
	}
	if err := <-waiting; err != nil || len(b.old.taken()) != 1 {
		t.Errorf("the write that waited: %v", err)
	}
}

// slowJournal records nothing. Its delay passes before the write is sent.
type slowJournal struct{ delay func(journal.Intent) }

func (slowJournal) Last() *journal.Status { return &journal.Status{} }

func (s slowJournal) Begin(_ context.Context, intent journal.Intent) (journal.Done, error) {
	if s.delay != nil && !intent.Unrecorded {
		s.delay(intent)
	}
	return func(context.Context, upstream.Response) {}, nil
}

// TestAProcessWithoutAHeartbeatDoesNotWrite: it does not know which rules are in force by now.
func TestAProcessWithoutAHeartbeatDoesNotWrite(t *testing.T) {
	reference, client := serve(t, tracker.Options{})
	store := openDisturbed(t)
	rule := always(PhaseOld, PhaseOld)
	rule.Replicate = true
	b := openBenchOver(t, store.Store, time.Hour, rule)
	stopped := func(journal.Intent) { b.clock.pass(b.timing.lease) }
	b.set(t, func(s *Settings) {
		s.Trackers, s.Journal = map[string]upstream.Tracker{"old": client, "new": b.new}, slowJournal{stopped}
	})
	call := upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1}, Summary: new("s")}}
	write := func() error { return call.Make(t.Context(), b.Switchover, caller(tracker.FixtureKeys()["dev"])).Err }
	wantLater(t, write(), "does not reach its store") // stopped after the decision
	must(t, b.beat(t.Context()))
	b.set(t, func(s *Settings) {
		s.Journal = slowJournal{func(intent journal.Intent) { stopped(intent); must(t, b.beat(t.Context())) }} // what was decided may have moved in the gap
	})
	wantLater(t, write(), "did not for a while")
	b.set(t, func(s *Settings) { s.Journal = slowJournal{stopped} })
	back := store.away()
	if err := b.beat(t.Context()); err == nil {
		t.Error("a heartbeat without the store")
	}
	wantLater(t, write(), "does not reach its store")
	if n := len(reference.Journal()); n != 0 {
		t.Errorf("the tracker got %d writes", n)
	}
	wantBug(t, t.Context(), b.Switchover, caller(tracker.FixtureKeys()["dev"]), "1")
	_ = b.Kill(t.Context(), "ann", "it burns") // which the store does not know
	if err := write(); err != nil || len(reference.Journal()) != 1 {
		t.Errorf("after a kill: %v", err)
	}
	back()
	must(t, errors.Join(b.Revive(t.Context(), "ann", "a slip"), b.beat(t.Context())))
	b.set(t, func(s *Settings) { s.Journal = slowJournal{} })
	if err := write(); err != nil {
		t.Errorf("after another heartbeat: %v", err)
	}
}

// TestAGapEndsWhenTheRulesAreRead: a write that comes after the heartbeat and is still decided by rules from before the gap is not sent.
func TestAGapEndsWhenTheRulesAreRead(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	b.timing.now = func() time.Time {
		b.clock.pass(time.Microsecond)
		return b.clock.now()
	}
	b.clock.pass(b.timing.lease)
	present, err := b.store.CurrentRevision(t.Context())
	must(t, err)
	_, err = b.store.Revise(t.Context(), present.Version, present, "") // by another process
	must(t, errors.Join(err, b.beat(t.Context())))
	if rules := b.rules.Load(); rules.revision.Version == present.Version || b.alive.Load().since.Before(rules.since) {
		t.Errorf("version %d is in force since %v, and the process may send what was decided since %v", rules.revision.Version, rules.since, b.alive.Load().since)
	}
}

// TestWhichWritesMove says for pairs of tables of which rules writes wait.
func TestWhichWritesMove(t *testing.T) {
	rule := func(name string, writes Phase, products ...string) Rule {
		return Rule{Name: name, Products: products, Reads: PhaseNew, Writes: writes}
	}
	shop, rest := rule("shop", PhaseOld, "Shop"), rule("rest", PhaseOld)
	killed := &Kill{}
	for name, c := range map[string]struct {
		before, after Table
		to            [2]string
		want          []string
	}{
		"one rule":                   {Table{Rules: []Rule{shop, rest}}, Table{Rules: []Rule{rule("shop", PhaseNewCompare, "Shop"), rest}}, [2]string{}, []string{"shop"}},
		"a comparison":               {Table{Rules: []Rule{shop, rest}}, Table{Rules: []Rule{rule("shop", PhaseOldCompare, "Shop"), rest}}, [2]string{}, nil},
		"a rule with other products": {Table{Rules: []Rule{shop, rest}}, Table{Rules: []Rule{rule("shop", PhaseNew, "Shop", "B"), rest}}, [2]string{}, []string{"shop", "rest"}},
		"a new rule":                 {Table{Rules: []Rule{rest}}, Table{Rules: []Rule{rule("shop", PhaseNew, "Shop"), rest}}, [2]string{}, []string{"rest"}},
		"a new rule as before":       {Table{Rules: []Rule{rest}}, Table{Rules: []Rule{shop, rest}}, [2]string{}, nil},
		"a revival":                  {Table{Rules: []Rule{shop, rest}, Killed: killed}, Table{Rules: []Rule{rule("shop", PhaseNew), rest}}, [2]string{}, []string{"shop", "rest"}},
		"a revival of old rules":     {Table{Rules: []Rule{shop, rest}, Killed: killed}, Table{Rules: []Rule{shop, rest}}, [2]string{}, nil},
		"trackers that are swapped":  {Table{Rules: []Rule{shop, rest}}, Table{Rules: []Rule{shop, rest}}, [2]string{"new", "old"}, []string{"shop", "rest"}},
		"the end of a migration":     {Table{Rules: []Rule{rule("rest", PhaseNew)}}, Table{Rules: []Rule{rest}}, [2]string{"new", "old"}, nil},
	} {
		from := [2]string{"old", "new"}
		if c.to[0] == "" {
			c.to = from
		}
		if got := movedWrites(c.before, from, c.after, c.to); !slices.Equal(got.rules, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAfterAKillNoWriteWaits for one that is still under way at the tracker that burns, nor for a move.
func TestAfterAKillNoWriteWaits(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	end := b.holding(t, b.new)
	ctx := patient(t, patience)
	moved := beside(func() error { return b.try(ctx, always(PhaseNew, PhaseOld)) })
	process.Eventually(t, "the beginning of the move", func() bool { return b.Status().Moving != nil })
	waiting := b.later(t, attachTo("1"))
	if _, undelivered := errors.AsType[*UndeliveredError](b.Kill(t.Context(), "ann", "it burns")); undelivered {
		if err := b.deliver(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := <-waiting; err != nil || len(b.old.taken()) != 1 {
		t.Errorf("the write that waited: %v", err)
	}
	if err := <-moved; err == nil {
		t.Error("the move succeeded after the kill")
	}
	end()
}

// TestUnderTheSameRulesNoWriteWaits: callers may write one bug in two trackers, if that is what the rules say.
func TestUnderTheSameRulesNoWriteWaits(t *testing.T) {
	b := openBench(t, moved(Rule{Callers: []string{"ci"}}), always(PhaseOld, PhaseOld))
	defer b.holding(t, b.old)()
	b.soon(t, "key-ci", attachTo("1"))
	if calls := b.new.taken(); len(calls) != 1 {
		t.Errorf("the new tracker got %d writes, want 1", len(calls))
	}
}

func TestAKeyIsTheSameCallerAsABearerToken(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	bearer := upstream.Caller{Credentials: upstream.Credentials{APIKey: "k", Authorization: "Bearer k"}}
	process.Text(t, attachTo("1").Make(t.Context(), b.Switchover, bearer).Document, nil)
	b.change(t, always(PhaseNew, PhaseNew))
	b.wantBy(t, "k", ofBugs("1"), "old", "what was written with a bearer token")
	other := caller("k")
	other.Credentials.Authorization = "Bearer another"
	if (&callInfo{caller: &bearer}).identity() == (&callInfo{caller: &other}).identity() {
		t.Error("two credentials are one caller")
	}
}

// hanging is a locator that answers nothing before its caller gives up.
type hanging struct {
	Locator
	asked chan struct{}
}

func (h *hanging) Bug(ctx context.Context, _ upstream.Caller, _ string) (mapping.Place, error) {
	h.asked <- struct{}{}
	<-ctx.Done()
	return mapping.Place{}, errDown
}

// TestAKillReachesWritesThatAreLookedUp at a tracker that hangs.
func TestAKillReachesWritesThatAreLookedUp(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	locator := &hanging{asked: make(chan struct{}, 1)}
	b.set(t, func(s *Settings) { s.Locate["old"] = locator })
	written := b.later(t, attachTo("1"))
	<-locator.asked
	must(t, b.Kill(t.Context(), "ann", "it burns"))
	if err := <-written; err != nil || len(b.old.taken()) != 1 {
		t.Error("the write did not go to the old tracker: ", err)
	}
}

// TestAStoreThatHasLostRules was restored, or has failed over. Another process may go by the rules before, so nothing is written until there are later ones.
func TestAStoreThatHasLostRules(t *testing.T) {
	store := openDisturbed(t)
	b := openBenchOver(t, store.Store, 5*time.Millisecond, always(PhaseOld, PhaseOld))
	must(t, b.try(t.Context(), always(PhaseNew, PhaseNew)))
	b.soon(t, "a", attachTo("1"))
	store.exec("DELETE FROM portico_revisions WHERE version > 1")
	process.Eventually(t, "the loss is known", func() bool { return strings.Contains(b.Status().Stale, "the store has lost version") })
	wantLater(t, attachTo("1").Make(patient(t, patience), b.Switchover, caller("a")).Err, "does not reach its store")
	if err := b.try(t.Context(), always(PhaseOld, PhaseOld)); err == nil || !strings.Contains(err.Error(), "has lost version") {
		t.Errorf("a change of rules that are lost: %v", err)
	}
	other := openUntilEnd(t, b.options, b.clock.now, time.Hour)
	b.clock.pass(time.Millisecond) // or another version 3 of the same moment would be the lost one
	for range 3 {
		must(t, other.Change(t.Context(), other.Status().Version, Table{Rules: []Rule{always(PhaseNew, PhaseOld)}}, "ann", "again"))
	}
	process.Eventually(t, "later rules are in force", func() bool { return b.Status().Stale == "" })
	b.old.taken()
	b.soon(t, "a", attachTo("1"))
	if len(b.old.taken()) != 1 {
		t.Error("the write did not go where the later rules say")
	}
}
