package transition_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy/admin/pages/transition"
	"portico/test/browser/fixtures"
	"portico/upstream"
	"portico/upstream/canary/verdict"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

const (
	old, oldCompare, newCompare, fresh = switchover.PhaseOld, switchover.PhaseOldCompare, switchover.PhaseNewCompare, switchover.PhaseNew
)

// held is a switchover that keeps its table in memory.
type held struct {
	status switchover.Status
	reason string
	// unseen is how many versions of other processes the status lags behind.
	unseen int64
}

// Status implements transition.Switchover.
func (h *held) Status() switchover.Status { return h.status }

// Change implements transition.Switchover.
func (h *held) Change(_ context.Context, version int64, table switchover.Table, _, reason string) error {
	if version != h.status.Version+h.unseen {
		return &state.ConflictError{Present: state.Revision{Version: h.status.Version}}
	}
	h.status.Version, h.status.Table, h.reason = version+1, table, reason
	return nil
}

// Revive implements transition.Switchover.
func (h *held) Revive(_ context.Context, _, reason string) error {
	h.status.Killed, h.reason = nil, reason
	return nil
}

func withRules(rules ...switchover.Rule) *held {
	return &held{status: switchover.Status{Old: "before", New: "after", Version: 7, Callers: []string{"robot"}, Table: switchover.Table{Rules: rules}}}
}

func rule(name string, reads, writes switchover.Phase) switchover.Rule {
	r := switchover.Rule{Name: name, Reads: reads, Writes: writes}
	if name != "rest" {
		r.Products = []string{name}
	}
	return r
}

// ready is a gate whose preconditions all hold.
func ready(h *held) *transition.Gate {
	g := fixtures.NewGate(h)
	g.Callers = map[string]upstream.Caller{"robot": {Credentials: upstream.Credentials{APIKey: "k"}}}
	return g
}

// reporting makes a gate whose report is changed.
func reporting(change func(*verdict.Report)) func(*transition.Gate) {
	return func(g *transition.Gate) {
		former := g.Report
		g.Report = func(ctx context.Context) (verdict.Report, error) {
			report, err := former(ctx)
			change(&report)
			return report, err
		}
	}
}

// refusing makes a gate whose probes of a tracker fail for callers with or without a name.
func refusing(tracker string, named bool, err error) func(*transition.Gate) {
	return func(g *transition.Gate) {
		g.Probe = func(_ context.Context, at string, caller upstream.Caller) error {
			if at == tracker && named != caller.Anonymous() {
				return err
			}
			return nil
		}
	}
}

// TestAStepIsTakenFromTheVersionThatItNames takes a step in a process that does not know yet what another one has changed.
func TestAStepIsTakenFromTheVersionThatItNames(t *testing.T) {
	h := withRules(rule("rest", oldCompare, old))
	h.unseen = 1
	g := ready(h)
	g.OtherKeys = true // who names another version learns of that first
	for _, version := range []int64{6, 8} {
		_, err := g.Move(t.Context(), transition.Move{Version: version, Rule: "rest", Actor: "ada", Reason: "a test"})
		if conflict, ok := errors.AsType[*state.ConflictError](err); !ok || conflict.Present.Version != 7 || h.reason != "" {
			t.Errorf("%v, and the rules are %+v", err, h.status.Table)
		}
	}
}

// TestEveryPreconditionRefuses breaks one precondition at a time.
func TestEveryPreconditionRefuses(t *testing.T) {
	noKey := mapping.Refuse(mapping.CodeLoginRequired, "no key")
	noKey.Reason = upstream.ReasonNoMappedKey
	badKey := &mapping.Error{Code: mapping.CodeBadKey, Status: 400}
	away := &mapping.Error{Code: mapping.CodeBadGateway, Status: 502, Reason: mapping.ReasonUnreachable}
	for _, tt := range []struct {
		what, name string
		state      transition.State
		value      string
		back       bool
		spoil      func(*transition.Gate)
	}{
		{"FAIL", "verdict", transition.StateFails, "FAIL of 9,000", false, reporting(func(r *verdict.Report) { r.Overall.Verdict = verdict.Fail })},
		{"INCONCLUSIVE", "verdict", transition.StateUnknown, "INCONCLUSIVE", false, reporting(func(r *verdict.Report) { r.Overall.Verdict = verdict.Inconclusive })},
		{"an old verdict", "freshness", transition.StateFails, "25 h", false, reporting(func(r *verdict.Report) { r.Timeline[0].At = r.At.Add(-25 * time.Hour) })},
		{"errors", "errors", transition.StateFails, "10 of 9,000", false, reporting(func(r *verdict.Report) { r.Overall.Failed = 10 })},
		{"unstable responses", "stability", transition.StateFails, "11 of 9,000", false, reporting(func(r *verdict.Report) { r.Overall.Unstable = 11 })},
		{"other keys", "credentials", transition.StateFails, "other keys", false, func(g *transition.Gate) { g.OtherKeys = true }},
		{"ids that come near the offset", "ids", transition.StateFails, "flag 99", false, func(g *transition.Gate) { g.IDProblem = func(bool) string { return "flag 99" } }},
		{"a tracker that is away", "trackers", transition.StateFails, "after gives no valid response", false, refusing("after", false, away)},
		{"a key that is refused", "keys", transition.StateFails, "after refuses the key of robot with code 306", false, refusing("after", true, badKey)},
		{"a caller without a key", "keys", transition.StateFails, "robot has no key at after", false, refusing("after", true, noKey)},
		{"a key that cannot be tried", "keys", transition.StateUnknown, "cannot be tried at after", false, refusing("after", true, away)},
		{"a caller that was seen", "callers", transition.StateFails, "1 seen without a key at after: bot", false, func(g *transition.Gate) {
			g.Missing = func(tracker string) []string { return map[string][]string{"after": {"bot"}}[tracker] }
		}},
		{"a caller without a key on the way back", "callers", transition.StateFails, "at before: bot", true, func(g *transition.Gate) {
			g.Missing = func(tracker string) []string { return map[string][]string{"before": {"bot"}}[tracker] }
		}},
		{"a key that is refused on the way back", "keys", transition.StateFails, "before refuses", true, refusing("before", true, badKey)},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := withRules(rule("shop", newCompare, old), rule("rest", oldCompare, old))
			g := ready(h)
			move := transition.Move{Version: 7, Rule: "rest", Actor: "ada", Reason: "a test"}
			if tt.back {
				move.Rule, move.Back = "shop", true
			}
			tt.spoil(g)
			_, err := g.Move(t.Context(), move)
			unready, ok := errors.AsType[*transition.UnreadyError](err)
			if !ok || h.status.Version != 7 {
				t.Fatalf("the move was not refused: %v", err)
			}
			if unready.Plan.State != tt.state || !strings.Contains(err.Error(), tt.name+" "+string(tt.state)) || !strings.Contains(err.Error(), tt.value) {
				t.Errorf("%s: %v", unready.Plan.State, err)
			}
			if n := strings.Count(err.Error(), "; "); n > 0 {
				t.Errorf("more than one precondition is named: %v", err)
			}
			move.Despite = []string{tt.name}
			if _, err := g.Move(t.Context(), move); err != nil || !strings.Contains(h.reason, "a test (despite "+move.Rule+" "+tt.name+")") {
				t.Errorf("the override: %v, kept as %q", err, h.reason)
			}
		})
	}
}

// TestWritesMoveWithTheirCopies: writes of a rule that replicates move in either direction, by a step or by a table, only to a tracker that has everything.
func TestWritesMoveWithTheirCopies(t *testing.T) {
	losses := journal.Status{Losses: []state.JournalLoss{{Receiver: "before", Rule: "rest", Kind: state.LossSkipped, What: "entry 4", Entries: 1}}}
	parked := journal.Status{Stopped: []state.JournalEntry{
		{Seq: 5, Receiver: "before", Rule: "rest", Status: state.JournalParked, Reason: "no such user"},
		{Seq: 6, Receiver: "after", Rule: "rest", Status: state.JournalParked, Reason: "no such group"},
	}}
	waiting := func(entries int64) *journal.Status {
		return &journal.Status{Rules: []state.JournalCount{{Rule: "rest", Receiver: "before", Status: state.JournalPending, Entries: entries}}}
	}
	copying := rule("rest", newCompare, newCompare)
	copying.Replicate = true
	ahead, alone := rule("rest", newCompare, oldCompare), rule("rest", newCompare, newCompare)
	ahead.Replicate = true
	renamed := rule("rest", newCompare, oldCompare)
	renamed.Name = "all"
	for name, tt := range map[string]struct {
		present switchover.Rule
		next    *switchover.Rule
		back    bool
		status  *journal.Status
		err     error
		want    string
	}{
		"parked on the way back":      {copying, nil, true, &parked, nil, "journal fails (a move of writes to before is unsafe: parked entry 5"},
		"parked on the way ahead":     {ahead, nil, false, &parked, nil, "journal fails (a move of writes to after is unsafe: parked entry 6"},
		"skipped on the way back":     {copying, nil, true, &losses, nil, "losses fails (a move of writes to before is unsafe: skipped entry 4"},
		"skipped on the way ahead":    {ahead, nil, false, &losses, nil, ""},
		"many to drain":               {copying, nil, true, waiting(9000), nil, "safe after draining 9,000 entries (about 900 s)"},
		"few to drain":                {copying, nil, true, waiting(40), nil, ""},
		"a journal that is away":      {copying, nil, true, nil, errors.New("locked"), "journal unknown (the journal cannot be read)"},
		"no journal":                  {copying, nil, true, nil, nil, "journal unknown"},
		"a rule that copies nothing":  {alone, nil, true, &parked, nil, ""},
		"a table that goes back":      {copying, &renamed, false, &parked, nil, "parked entry 5"},
		"a table that may go back":    {copying, &renamed, false, waiting(4), nil, ""},
		"a table of what copies none": {alone, &renamed, false, &parked, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := withRules(tt.present)
			g := ready(h)
			g.Journal = func(context.Context) (*journal.Status, error) { return tt.status, tt.err }
			move := transition.Move{Version: 7, Rule: "rest", Back: tt.back, Actor: "ada", Reason: "a test"}
			if tt.next != nil {
				move.Rule, move.Table.Rules = "", []switchover.Rule{*tt.next}
			}
			_, err := g.Move(t.Context(), move)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			need := "journal"
			if tt.status == &losses {
				need = "losses"
			}
			if move.Despite = []string{need}; err != nil {
				if _, err := g.Move(t.Context(), move); err != nil || !strings.Contains(h.reason, "despite "+cmp.Or(move.Rule, "all")+" "+need) {
					t.Errorf("the override: %v, kept as %q", err, h.reason)
				}
			}
		})
	}
}

// TestAPlanAsksAboutMail of the tracker that copies go to.
func TestAPlanAsksAboutMail(t *testing.T) {
	copying, alone := rule("shop", newCompare, newCompare), rule("rest", old, old)
	copying.Replicate = true
	g := ready(withRules(copying, alone))
	for back, receiver := range map[bool]string{false: "before", true: "after"} {
		plan, err := g.Plan(t.Context(), "", back)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Steps[0].Confirm; len(got) != 1 || !strings.HasPrefix(got[0], receiver+" sends no mail") || len(plan.Steps[1].Confirm) != 0 {
			t.Errorf("back %t: got %q and %q, want a question about %s", back, got, plan.Steps[1].Confirm, receiver)
		}
	}
}

// TestAStoreThatCannotBeReadTellsNothing refuses where there is no verdict at all.
func TestAStoreThatCannotBeReadTellsNothing(t *testing.T) {
	g := ready(withRules(rule("rest", oldCompare, old)))
	g.Report = func(context.Context) (verdict.Report, error) { return verdict.Report{}, errors.New("locked") }
	plan, err := g.Plan(t.Context(), "", false)
	if err != nil || plan.State != transition.StateUnknown {
		t.Errorf("%+v, %v", plan, err)
	}
	g.OtherKeys = true
	if plan, err = g.Plan(t.Context(), "", false); err != nil || plan.State != transition.StateFails {
		t.Errorf("with a precondition that fails: %+v, %v", plan, err)
	}
}

// TestOnlyTheOperationsOfARuleCount judges a rule on operations by their verdicts alone.
func TestOnlyTheOperationsOfARuleCount(t *testing.T) {
	lists := rule("rest", oldCompare, old)
	lists.Name, lists.Operations = "lists", []mapping.Operation{mapping.OpBugAttachments}
	both := lists
	both.Name, both.Operations = "both", []mapping.Operation{mapping.OpBugAttachments, mapping.OpAttachment}
	g := ready(withRules(lists, both, rule("rest", oldCompare, old)))
	reporting(func(r *verdict.Report) {
		r.Overall.Verdict = verdict.Fail
		r.Operations = []verdict.OperationVerdict{{Operation: mapping.OpBugAttachments, Verdict: verdict.Pass, Compared: 50}}
	})(g)
	for name, want := range map[string]transition.State{"lists": transition.StateHolds, "both": transition.StateUnknown, "rest": transition.StateFails} {
		if plan, err := g.Plan(t.Context(), name, false); err != nil || plan.State != want {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}

// TestIDsAreCheckedForTwoWriters, of which one may get copies only.
func TestIDsAreCheckedForTwoWriters(t *testing.T) {
	for copies, want := range map[bool]transition.State{true: transition.StateFails, false: transition.StateHolds} {
		reads := rule("rest", oldCompare, old)
		reads.Replicate = copies
		g := ready(withRules(reads))
		g.IDProblem = func(bothWrite bool) string { return map[bool]string{true: "both give the same ids"}[bothWrite] }
		if plan, err := g.Plan(t.Context(), "", false); err != nil || plan.State != want {
			t.Errorf("copies %t: %+v, %v", copies, plan, err)
		}
	}
}

// TestTheWayOfARule takes a rule from old to new and back, one phase at a time.
func TestTheWayOfARule(t *testing.T) {
	h := withRules(rule("rest", old, old))
	g := ready(h)
	way := []switchover.PhasePair{
		{Reads: old, Writes: old}, {Reads: oldCompare, Writes: old}, {Reads: newCompare, Writes: old}, {Reads: newCompare, Writes: oldCompare},
		{Reads: newCompare, Writes: newCompare}, {Reads: newCompare, Writes: fresh}, {Reads: fresh, Writes: fresh},
	}
	move := func(back bool) error {
		_, err := g.Move(t.Context(), transition.Move{Version: h.status.Version, Rule: "rest", Back: back, Actor: "ada", Reason: "a test"})
		return err
	}
	check := func(want switchover.PhasePair) {
		t.Helper()
		if is := h.status.Table.Rules[0].Phases(); is != want {
			t.Fatalf("the rule is at %+v, want %+v", is, want)
		}
	}
	for _, want := range way[1:] {
		if err := move(false); err != nil {
			t.Fatal(err)
		}
		check(want)
	}
	if _, ok := errors.AsType[*transition.RequestError](move(false)); !ok {
		t.Error("there is a phase after the last one")
	}
	for _, want := range slices.Backward(way[:len(way)-1]) {
		if err := move(true); err != nil {
			t.Fatal(err)
		}
		check(want)
	}
	if _, ok := errors.AsType[*transition.RequestError](move(true)); !ok {
		t.Error("there is a phase before the first one")
	}
}

// TestWhatATableTakesAhead says for whole tables which of their rules need something.
func TestWhatATableTakesAhead(t *testing.T) {
	shop, rest := rule("shop", newCompare, old), rule("rest", oldCompare, old)
	wider := shop
	wider.Products = []string{"shop", "more"}
	passing := func(reads switchover.Phase) *switchover.PhasePair {
		return &switchover.PhasePair{Reads: reads, Writes: old}
	}
	for _, tt := range []struct {
		what string
		next switchover.Table
		want []string // the rules with preconditions
	}{
		{"nothing", switchover.Table{Rules: []switchover.Rule{shop, rest}}, nil},
		{"back", switchover.Table{Rules: []switchover.Rule{rule("shop", oldCompare, old), rest}}, nil},
		{"a comparison", switchover.Table{Rules: []switchover.Rule{shop, rule("rest", oldCompare, oldCompare)}}, nil},
		{"one ahead", switchover.Table{Rules: []switchover.Rule{shop, rule("rest", newCompare, old)}}, []string{"rest"}},
		{"a new rule as before", switchover.Table{Rules: []switchover.Rule{shop, rule("a", oldCompare, old), rest}}, nil},
		{"a new rule ahead", switchover.Table{Rules: []switchover.Rule{shop, rule("a", newCompare, old), rest}}, []string{"a"}},
		{"more products", switchover.Table{Rules: []switchover.Rule{wider, rest}}, []string{"shop"}},
		{"another name", switchover.Table{Rules: []switchover.Rule{rule("store", newCompare, old), rest}}, []string{"store"}},
		{"another order", switchover.Table{Rules: []switchover.Rule{rule("a", newCompare, old), shop, rest}}, []string{"a"}},
		{"one gone", switchover.Table{Rules: []switchover.Rule{rest}}, nil},
		{"other paths", switchover.Table{Rules: []switchover.Rule{shop, rest}, Passthrough: passing(newCompare)}, []string{"passthrough"}},
		{"other paths back", switchover.Table{Rules: []switchover.Rule{shop, rest}, Passthrough: passing(old)}, nil},
	} {
		h := withRules(shop, rest)
		plan, err := ready(h).Move(t.Context(), transition.Move{Version: 7, Table: tt.next, DryRun: true})
		var got []string
		for _, step := range plan.Steps {
			got = append(got, step.Rule)
		}
		if err != nil || !slices.Equal(got, tt.want) || h.status.Version != 7 {
			t.Errorf("%s: %v, %v, want %v; after this dry run the version is %d", tt.what, got, err, tt.want, h.status.Version)
		}
	}
}

// TestTwoPhasesAtOnceAreRefused holds apply to one phase at a time.
func TestTwoPhasesAtOnceAreRefused(t *testing.T) {
	h := withRules(rule("rest", oldCompare, old))
	g := ready(h)
	move := transition.Move{Version: 7, Table: switchover.Table{Rules: []switchover.Rule{rule("rest", fresh, old)}}, Actor: "ada", Reason: "a test"}
	if _, err := g.Move(t.Context(), move); err == nil || !strings.Contains(err.Error(), "rest: one-phase fails (phases ahead at once: 2 (limit 1))") {
		t.Errorf("two phases at once: %v", err)
	}
	move.Despite = []string{"speed"}
	if _, err := g.Move(t.Context(), move); err == nil || !strings.Contains(err.Error(), `no precondition "speed"`) {
		t.Errorf("an unknown precondition: %v", err)
	}
	if h.status.Version != 7 {
		t.Fatal("one of them was taken")
	}
}

// TestRevivalIsEarned where a rule copies writes to a tracker that lacks some.
func TestRevivalIsEarned(t *testing.T) {
	moved := rule("shop", fresh, fresh)
	moved.Replicate = true
	for name, tt := range map[string]struct {
		rules   []switchover.Rule
		lost    []state.JournalLoss
		despite []string
		want    string
	}{
		"nothing was written": {rules: []switchover.Rule{moved, rule("rest", old, old)}},
		"nothing is copied":   {rules: []switchover.Rule{rule("rest", fresh, fresh)}, lost: []state.JournalLoss{{Receiver: "after", Rule: "kill switch", Kind: "unrecorded"}}},
		"written meanwhile": {
			rules: []switchover.Rule{moved, rule("rest", old, old)}, want: "shop: losses fails",
			lost: []state.JournalLoss{{Receiver: "after", Rule: "kill switch", Kind: "unrecorded", What: "attachment.create", Entries: 2}},
		},
		"overridden": {
			rules: []switchover.Rule{moved, rule("rest", old, old)}, despite: []string{"losses"},
			lost: []state.JournalLoss{{Receiver: "after", Rule: "kill switch", Kind: "unrecorded", What: "attachment.create", Entries: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := withRules(tt.rules...)
			h.status.Killed = &switchover.Kill{}
			g := ready(h)
			g.Journal = func(context.Context) (*journal.Status, error) { return &journal.Status{Losses: tt.lost}, nil }
			err := g.Revive(t.Context(), "ada", "mended", tt.despite)
			if tt.want == "" && (err != nil || h.status.Killed != nil) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || h.status.Killed == nil) {
				t.Errorf("got %v, want %q; killed: %v", err, tt.want, h.status.Killed)
			}
			if got := strings.Contains(h.reason, "despite shop losses"); got != (tt.despite != nil) {
				t.Errorf("the reason is %q", h.reason)
			}
		})
	}
}
