package switchover

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// reading are the operations that read.
var reading = slices.DeleteFunc(mapping.Operations(), mapping.Operation.IsWrite)

// restBeside is a last rule that may stand beside another one: reads may not be behind what a rule for some operations writes.
func restBeside(rule Rule) Rule {
	if len(rule.Operations) > 0 {
		return always(PhaseNew, PhaseOld)
	}
	return always(PhaseOld, PhaseOld)
}

// TestEveryOperationIsCompared: rules for an operation without a relation are not checked, and a write without a place is sent nowhere.
func TestEveryOperationIsCompared(t *testing.T) {
	all := relations(&sample{})
	for _, operation := range mapping.Operations() {
		compared := slices.ContainsFunc(all, func(r relation) bool {
			return r.write == operation || r.other == operation && !operation.IsWrite()
		})
		if !compared {
			t.Errorf("relations do not say which other operations are about what %s is about", operation)
		}
	}
	b := openBench(t, always(PhaseOld, PhaseOld))
	_, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: "new.operation"})
	if refusal, ok := errors.AsType[*mapping.Error](err); !ok || refusal.Reason != mapping.ReasonSwitchover || len(b.old.taken())+len(b.new.taken()) > 0 {
		t.Errorf("an operation without a place: %v", err)
	}
}

func TestProblems(t *testing.T) {
	rest := always(PhaseOld, PhaseOld)
	named := func(name string, rule Rule) Rule {
		rule.Name = name
		if rule.Reads == "" {
			rule.Reads, rule.Writes = PhaseOld, PhaseOld
		}
		return rule
	}
	for _, c := range []struct {
		name  string
		rules []Rule
		want  []string // rule.field: a part of the message
	}{
		{"none at all", nil, []string{"-1.: no rules"}},
		{"the least", []Rule{rest}, nil},
		{"gap", []Rule{named("a", Rule{Products: []string{"P"}})}, []string{"0.: no conditions"}},
		{"gap by percentage", []Rule{named("a", Rule{Percent: new(100.0)})}, []string{"0.: no conditions"}},
		{"no name", []Rule{named(" ", Rule{Products: []string{"P"}}), rest}, []string{"0.name: needs a name"}},
		{"a name of two lines", []Rule{named("a\nrule b", Rule{Products: []string{"P"}}), rest}, []string{"0.name: control character"}},
		{"a name with a sequence for terminals", []Rule{named("a\x1b[2J", Rule{Products: []string{"P"}}), rest}, []string{"0.name: control character"}},
		{"a name in any script", []Rule{named("Ünïcode 日本 <b>", Rule{Products: []string{"P"}}), rest}, nil},
		{"one name twice", []Rule{named("rest", Rule{Products: []string{"P"}}), rest}, []string{`1.name: another rule "rest"`}},
		{"no phase", []Rule{{Name: "rest", Reads: "both"}}, []string{`0.reads: "both" is no phase`, `0.writes: "" is no phase`}},
		{"reads behind", []Rule{always(PhaseOldCompare, PhaseNewCompare)}, []string{"0.reads: behind writes"}},
		{"reads ahead", []Rule{always(PhaseNew, PhaseOldCompare)}, nil},
		{"attachments beside bugs", []Rule{named("a", Rule{Operations: []mapping.Operation{mapping.OpBugAttachments}, Attachments: []Range{{1, 9}}}), rest}, nil},
		{"comparing is not behind", []Rule{always(PhaseNewCompare, PhaseNew)}, nil},
		{"empty product", []Rule{named("a", Rule{Products: []string{" "}}), rest}, []string{"0.products: empty"}},
		{"range backwards", []Rule{named("a", Rule{Bugs: []Range{{9, 2}}}), rest}, []string{"0.bugs: no range"}},
		{"range from 0", []Rule{named("a", Rule{Attachments: []Range{{0, 2}}}), rest}, []string{"0.attachments: no range"}},
		{"unknown operation", []Rule{named("a", Rule{Operations: []mapping.Operation{"bug.get"}}), rest}, []string{`0.operations: no operation "bug.get", only ["flag_type.get" "flag_type.create"`}},
		{"unknown caller", []Rule{named("a", Rule{Callers: []string{"unknown"}}), rest}, []string{`0.callers: no caller is named "unknown", only ["ci" "bot"]`}},
		{"known caller", []Rule{named("a", Rule{Callers: []string{"ci"}}), rest}, nil},
		{"star in the middle", []Rule{named("a", Rule{UserAgents: []string{"a*b"}}), rest}, []string{"0.user_agents: not at the end"}},
		{"more than all", []Rule{named("a", Rule{Percent: new(101.0)}), rest}, []string{"0.percent: no percentage"}},
		{"hidden by all", []Rule{named("a", Rule{}), rest}, []string{`1.: never reached, because rule 1 ("a")`}},
		{"hidden by product", []Rule{
			named("a", Rule{Products: []string{"P", "Q"}}), named("b", Rule{Products: []string{"q"}, Callers: []string{"ci"}}), rest,
		}, []string{`1.: never reached`}},
		{"hidden by a range", []Rule{
			named("a", Rule{Bugs: []Range{{50, 0}, {1, 49}}}), named("b", Rule{Bugs: []Range{{40, 45}, {50, 60}, {70, 0}}}), rest,
		}, []string{`1.: never reached`}},
		{"hidden by a longer beginning", []Rule{
			named("a", Rule{UserAgents: []string{"git*"}}), named("b", Rule{UserAgents: []string{"git/2*", "gitk"}}), rest,
		}, []string{`1.: never reached`}},
		{"not hidden by a part of callers", []Rule{
			named("a", Rule{Products: []string{"P"}, Percent: new(100.0)}), named("b", Rule{Products: []string{"P"}}), rest,
		}, nil},
		{"not hidden by less", []Rule{
			named("a", Rule{Products: []string{"P"}, Components: []string{"C"}}), named("b", Rule{Products: []string{"P"}}), rest,
		}, nil},
		{"not hidden beyond a gap", []Rule{
			named("a", Rule{Bugs: []Range{{1, 10}, {12, 20}}}), named("b", Rule{Bugs: []Range{{5, 15}}}), rest,
		}, nil},
		{"not hidden beyond an end", []Rule{
			named("a", Rule{Bugs: []Range{{1, 10}}}), named("b", Rule{Bugs: []Range{{5, 0}}}), rest,
		}, nil},
		{"hidden by two together is not found", []Rule{
			named("a", Rule{Products: []string{"P"}}), named("b", Rule{Products: []string{"q"}}), named("c", Rule{Products: []string{"p", "Q"}}), rest,
		}, nil},
		{"hidden by every user agent", []Rule{named("a", Rule{UserAgents: []string{"*"}}), rest}, []string{`1.: "rest" is never reached`}},
		{"hidden by every operation", []Rule{named("a", Rule{Operations: mapping.Operations()}), rest}, []string{`1.: "rest" is never reached`}},
		{"not hidden by parts", []Rule{
			named("a", Rule{Products: []string{"P"}, Bugs: []Range{{1, 9}}}), named("b", Rule{Products: []string{"P"}, Bugs: []Range{{11, 0}}}),
			named("c", Rule{Products: []string{"P"}}), rest,
		}, nil},
		{"reads of another rule behind", []Rule{
			moved(Rule{Operations: []mapping.Operation{mapping.OpCreateAttachment, mapping.OpUpdateAttachments}}), rest,
		}, []string{`0.reads: by rule 2 ("rest")`}},
		{"reads before writes are behind", []Rule{
			named("reads", Rule{Operations: reading}), always(PhaseNew, PhaseNew),
		}, []string{`1.reads: by rule 1 ("reads")`}},
		{"reads of another rule ahead", []Rule{
			{Name: "writes", Operations: []mapping.Operation{mapping.OpCreateAttachment, mapping.OpUpdateAttachments}, Reads: PhaseNew, Writes: PhaseNew}, always(PhaseNew, PhaseOld),
		}, nil},
		{"two writers of attachments", []Rule{
			{Name: "adds", Operations: []mapping.Operation{mapping.OpCreateAttachment}, Reads: PhaseNew, Writes: PhaseNew}, always(PhaseNew, PhaseOld),
		}, []string{"0.writes: attachment.create goes to the new tracker (warning)"}},
		{"two writers of flag types", []Rule{
			{Name: "adds", Products: []string{"P"}, Operations: []mapping.Operation{mapping.OpCreateFlagType}, Reads: PhaseNew, Writes: PhaseOld}, always(PhaseNew, PhaseNew),
		}, []string{`1.writes: by rule 1 ("adds"), so one object (warning)`}},
		{"one writer of each kind of object", []Rule{
			{Name: "types", Operations: []mapping.Operation{mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes}, Reads: PhaseNew, Writes: PhaseNew}, always(PhaseNew, PhaseOld),
		}, nil},
		{"reads of two rules ahead", []Rule{
			{Name: "a", Products: []string{"A"}, Operations: reading, Reads: PhaseNew, Writes: PhaseOld},
			{Name: "b", Products: []string{"B"}, Operations: reading, Reads: PhaseNew, Writes: PhaseOld},
			moved(Rule{Products: []string{"A", "B"}}), rest,
		}, nil},
		{"attachments without their bug", []Rule{moved(Rule{Attachments: []Range{{1, 5}}}), rest}, []string{"0.writes: the list of a bug's attachments (warning)"}},
		{"attachments that stay", []Rule{named("a", Rule{Attachments: []Range{{1, 5}}}), always(PhaseNew, PhaseNew)}, nil},
		{"a component without its product", []Rule{
			moved(Rule{Products: []string{"P"}, Components: []string{"C"}}), rest,
		}, []string{"0.writes: the flag types of a whole product (warning)"}},
		{"two writers", []Rule{moved(Rule{Percent: new(10.0)}), rest}, []string{"0.writes: in both (warning)"}},
		{"one writer", []Rule{named("a", Rule{Percent: new(10.0), Reads: PhaseNew, Writes: PhaseOld}), rest}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkProblems(t, Table{Rules: c.rules}.Problems([]string{"ci", "bot"}), c.want)
		})
	}
	passthrough := Table{Rules: []Rule{rest}, Passthrough: &PhasePair{PhaseOld, PhaseNew}}
	checkProblems(t, passthrough.Problems(nil), []string{"-1.passthrough.reads: behind"})
	passthrough.Passthrough.Reads = PhaseNew
	checkProblems(t, passthrough.Problems(nil), nil)
}

// TestManyRulesAreCheckedInTime: each caller may be in the shares of any two rules.
func TestManyRulesAreCheckedInTime(t *testing.T) {
	rules := make([]Rule, 300)
	for i := range rules {
		rules[i] = Rule{Name: fmt.Sprint(i), Percent: new(50.0), Reads: PhaseNew, Writes: PhaseOld}
		if i%2 == 0 {
			rules[i].Writes = PhaseNew
		}
	}
	began := time.Now()
	problems := Table{Rules: append(rules, always(PhaseNew, PhaseOld))}.Problems(nil)
	if took := time.Since(began); took > 20*time.Second || len(faults(problems)) > 0 || problems[0].Rule != -1 {
		t.Errorf("after %v the first problem is %v", took, problems[0])
	}
}

func checkProblems(t *testing.T, got []Problem, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %q", got, want)
	}
	for i, problem := range got {
		place, message, _ := strings.Cut(want[i], ": ")
		message, warning := strings.CutSuffix(message, " (warning)")
		if fmt.Sprintf("%d.%s", problem.Rule, problem.Field) != place || problem.Warning != warning || !strings.Contains(problem.Message, message) {
			t.Errorf("got %+v, want %q", problem, want[i])
		}
	}
}

// anyRule draws rules from few values, so that they often overlap.
func anyRule(t *rapid.T, name string) Rule {
	some := func(label string, from ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID).Draw(t, label)
	}
	r := Rule{
		Name: name, Products: some("products", "P1", "p1", "P2"), Components: some("components", "C", "D"),
		Callers: some("callers", "ci", "bot"), UserAgents: some("agents", "a*", "ab", "abc*", "*"),
		Reads: PhaseOld, Writes: PhaseOld,
	}
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		from := rapid.Int64Range(1, 9).Draw(t, "from")
		r.Bugs = append(r.Bugs, Range{from, max(from, rapid.Int64Range(0, 9).Draw(t, "to"))})
	}
	if rapid.Bool().Draw(t, "has operations") {
		r.Operations = rapid.SliceOfNDistinct(rapid.SampledFrom(mapping.Operations()[3:5]), 1, 2, rapid.ID).Draw(t, "operations")
	}
	if rapid.IntRange(0, 3).Draw(t, "has percent") == 0 {
		r.Percent = new(50.0)
	}
	return r
}

func TestHiddenRulesAreNeverReached(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rules []Rule
		for i := range rapid.IntRange(1, 5).Draw(rt, "rules") {
			rules = append(rules, anyRule(rt, fmt.Sprint("r", i)))
		}
		rules = append(rules, always(PhaseOld, PhaseOld))
		hidden := map[int]bool{}
		for _, problem := range (Table{Rules: rules}).Problems([]string{"ci", "bot"}) {
			hidden[problem.Rule] = true
		}
		seed := rapid.Uint64().Draw(rt, "sample")
		settings := Settings{Caller: func(c upstream.Caller) string { return c.Credentials.APIKey }}
		set := newRuleSet(settings, Table{Rules: rules}, state.Revision{}, nil)
		random := rand.New(rand.NewPCG(seed, 1))
		for range 200 {
			at, call, place := set.randomCall(random)
			if hidden[at] {
				rt.Fatalf("rule %d is called hidden, and a call by %q as %q about %+v is for it: %v",
					at, call.caller.Credentials.APIKey, call.caller.UserAgent, place, rules)
			}
		}
	})
}

// randomCall makes a call about an object whose place is known, and finds the rule for it.
func (r *ruleSet) randomCall(from *rand.Rand) (int, *callInfo, mapping.Place) {
	pick := func(list ...string) string { return list[from.IntN(len(list))] }
	who := upstream.Caller{Credentials: upstream.Credentials{APIKey: pick("ci", "bot", "", "x")}, UserAgent: pick("a", "ab", "abc", "abcd", "z", "")}
	call := &callInfo{ruleSet: r, caller: &who, operation: mapping.Operations()[3+from.IntN(2)]}
	place := mapping.Place{Bug: 1 + from.Int64N(10), Product: pick("P1", "P2", "P3"), Component: pick("C", "D", "E")}
	made, _, _ := call.route(&object{kind: bugObject, id: place.Bug}, &place)
	return made.rule, call, place
}

// A move of writes is announced in a revision of its own, and may be given up in another one.
func TestChangesOfABarrier(t *testing.T) {
	rules := []Rule{always(PhaseNew, PhaseOld)}
	before, waiting, moved := Table{Rules: rules}, Table{Rules: rules, Moving: []string{"rest"}}, Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}
	for _, c := range []struct {
		from, to Table
		want     string
	}{
		{before, waiting, "writes wait while they move: rest"}, {waiting, before, "writes go on as before"}, {waiting, moved, "rest: writes old → new"},
	} {
		if got := Changes(c.from, c.to); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
