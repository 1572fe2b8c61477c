package switchover

import (
	"slices"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

func typesOf(product, component string) upstream.Call {
	return upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product, Component: component}}
}

func ofBugs(bugs ...string) upstream.Call {
	return upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: bugs}}
}

func ofAttachments(ids ...string) upstream.Call {
	return upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: ids}}
}

func attachTo(bugs ...string) upstream.Call {
	return upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: bugs}}
}

func changing(ids ...int64) upstream.Call {
	return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids}}
}

func makingType(inclusions *mapping.Scopes) upstream.Call {
	return upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{
		FlagTypeFields: mapping.FlagTypeFields{Inclusions: inclusions},
	}}
}

func changingTypes(ids ...int64) upstream.Call {
	return upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: ids}}
}

func TestConditions(t *testing.T) {
	products := Rule{Products: []string{"P1", " P3 "}}
	component := Rule{Products: []string{"P1"}, Components: []string{"C"}}
	bugs := Rule{Bugs: []Range{{1, 2}, {8, 0}}}
	attachments := Rule{Attachments: []Range{{11, 12}}}
	agents := Rule{UserAgents: []string{"git", "old/*"}}
	writers := Rule{Operations: []mapping.Operation{mapping.OpCreateAttachment, mapping.OpFlagTypes}}
	for _, c := range []struct {
		name string
		rule Rule
		call upstream.Call
		want bool
	}{
		{"product", products, typesOf("P1", ""), true},
		{"product in another case", products, typesOf("p3", ""), true},
		{"another product", products, typesOf("P2", ""), false},
		{"product of a bug", products, ofBugs("1"), true},
		{"product of another bug", products, ofBugs("2"), false},
		{"product of an alias", products, ofBugs("bug-3"), true},
		{"product of an attachment", products, ofAttachments("31"), true},
		{"product of another attachment", products, ofAttachments("21"), false},
		{"product of a bug that is not there", products, ofBugs("99"), false},
		{"product of a hidden bug", products, ofBugs("77"), false},
		{"product of a hidden attachment", products, ofAttachments("771"), false},
		{"product of a new attachment", products, attachTo("1"), true},
		{"product of a changed attachment", products, changing(31), true},
		{"component", component, typesOf("P1", "c"), true},
		{"another component", component, typesOf("P1", "D"), false},
		{"a product as a whole", component, typesOf("P1", ""), false},
		{"component of a bug", component, ofBugs("1"), true},
		{"component of another product", component, ofBugs("2"), false},
		{"component of any product", Rule{Components: []string{"C"}}, ofBugs("2"), true},
		{"bug", bugs, ofBugs(" 002 "), true},
		{"bug outside", bugs, ofBugs("3"), false},
		{"bug beyond an open end", bugs, ofBugs("12345678901"), true},
		{"bug by alias", bugs, ofBugs("Bug-2"), true},
		{"bug of an attachment", bugs, ofAttachments("25"), true},
		{"bug of another attachment", bugs, ofAttachments("35"), false},
		{"bugs and flag types", bugs, typesOf("P1", ""), false},
		{"attachment", attachments, ofAttachments("12"), true},
		{"attachment outside", attachments, ofAttachments("13"), false},
		{"attachments and their bug", attachments, ofBugs("1"), false},
		{"attachments and a new one", attachments, attachTo("1"), false},
		{"operation", writers, attachTo("1"), true},
		{"another operation", writers, ofBugs("1"), false},
		{"one of the operations", writers, typesOf("X", ""), true},
		{"caller", Rule{Callers: []string{"bot", "ci"}}, ofBugs("1"), true},
		{"another caller", Rule{Callers: []string{"bot"}}, ofBugs("1"), false},
		{"beginning of a user agent", agents, ofBugs("1"), true},
		{"another user agent", Rule{UserAgents: []string{"old"}}, ofBugs("1"), false},
		{"everybody", Rule{Percent: new(100.0)}, ofBugs("1"), true},
		{"nobody", Rule{Percent: new(0.0)}, ofBugs("1"), false},
		{"all conditions", Rule{Products: []string{"P1"}, Bugs: []Range{{1, 1}}, Callers: []string{"ci"}}, ofBugs("1"), true},
		{"all but one condition", Rule{Products: []string{"P1"}, Bugs: []Range{{2, 2}}, Callers: []string{"ci"}}, ofBugs("1"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openBench(t, moved(c.rule), restBeside(c.rule))
			from := caller("key-ci")
			from.UserAgent = "old/1.0"
			made, err := b.explain(t.Context(), from, c.call)
			if err != nil || (made.Index == 0) != c.want {
				t.Errorf("got %+v (%v), want new: %v", made, err, c.want)
			}
		})
	}
}

func TestFirstRuleThatMatchesCounts(t *testing.T) {
	first := Rule{Name: "first", Products: []string{"P1"}, Reads: PhaseOld, Writes: PhaseOld}
	second := Rule{Name: "second", Products: []string{"P1", "P2"}, Reads: PhaseNew, Writes: PhaseOld}
	b := openBench(t, first, second, always(PhaseOld, PhaseOld))
	for product, want := range map[string]string{"P1": "first", "P2": "second", "P3": "rest"} {
		for _, call := range []upstream.Call{typesOf(product, ""), ofBugs(product[1:]), ofAttachments(product[1:] + "1")} {
			made, err := b.explain(t.Context(), caller("k"), call)
			if err != nil || made.Rule != want {
				t.Errorf("%s of %s: got rule %q (%v), want %q", call.Operation, product, made.Rule, err, want)
			}
		}
	}
}

func TestReadsAndWritesAreApart(t *testing.T) {
	b := openBench(t, always(PhaseNewCompare, PhaseOld))
	read, err := b.explain(t.Context(), caller("k"), ofBugs("1"))
	if err != nil || read.Tracker != "new" || read.Compared != "old" {
		t.Errorf("a read: %+v (%v)", read, err)
	}
	write, err := b.explain(t.Context(), caller("k"), attachTo("1"))
	if err != nil || write.Tracker != "old" || write.Compared != "" {
		t.Errorf("a write: %+v (%v)", write, err)
	}
	if b.Passthrough(false) != "new" || b.Passthrough(true) != "old" {
		t.Error("the passthrough does not follow the last rule")
	}
}

func TestNothingIsLookedUpInVain(t *testing.T) {
	product := Rule{Name: "p", Products: []string{"P1"}, Reads: PhaseNew, Writes: PhaseOld}
	b := openBench(t, product, always(PhaseOld, PhaseOld))
	b.explainAll(t, typesOf("P1", ""), attachTo("1"), changing(11), changingTypes(1), makingType(nil))
	if asked := b.atlas.taken(); len(asked) > 0 {
		t.Errorf("asked for %q, which makes no difference", asked)
	}
	b.explainAll(t, ofBugs("1"), ofAttachments("11"), ofAttachments("11"))
	if asked := b.atlas.taken(); len(asked) != 2 {
		t.Errorf("asked for %q, want the bug and the attachment once each", asked)
	}
	if _, err := b.explain(t.Context(), caller("another"), ofBugs("1")); err != nil || len(b.atlas.taken()) != 1 {
		t.Errorf("another caller was told what the tracker had said to the first one (%v)", err)
	}
}

func (b *bench) explainAll(t *testing.T, calls ...upstream.Call) {
	t.Helper()
	for _, call := range calls {
		if _, err := b.explain(t.Context(), caller("k"), call); err != nil {
			t.Errorf("%s: %v", call.Operation, err)
		}
	}
}

func TestATrackerThatCannotBeAskedIsTheAnswer(t *testing.T) {
	product := moved(Rule{Products: []string{"P1"}})
	b := openBench(t, product, always(PhaseOld, PhaseOld))
	for _, call := range []upstream.Call{ofBugs("88"), ofAttachments("881"), attachTo("88"), changing(881)} {
		if _, err := b.explain(t.Context(), caller("k"), call); err != errDown {
			t.Errorf("%s: got %v, want the error of the lookup", call.Operation, err)
		}
	}
	if _, err := b.explain(t.Context(), caller("k"), ofBugs("66")); err != errBroken {
		t.Errorf("got %v, want the failure of the tracker", err)
	}
	product.Reads, product.Writes = PhaseOldCompare, PhaseOld
	b.change(t, product, always(PhaseOld, PhaseOld))
	if made, err := b.explain(t.Context(), caller("k"), ofBugs("88")); err != nil || made.Compared != "" {
		t.Errorf("got %+v (%v): a comparison is no reason to fail", made, err)
	}
}

// TestConditionsInWords words each condition of a rule. A name that looks like several is in quotes.
func TestConditionsInWords(t *testing.T) {
	share := 12.5
	rule := Rule{
		Name: "all", Products: []string{"A", "B, C"}, Components: []string{"x"}, Bugs: []Range{{From: 1, To: 5}, {From: 9}},
		Attachments: []Range{{From: 7, To: 7}}, Operations: []mapping.Operation{mapping.OpFlagTypes}, Callers: []string{"ci"},
		UserAgents: []string{"ci/*"}, Percent: &share,
	}
	want := []string{
		`product A, "B, C"`, "component x", "bugs 1-5, 9-", "attachments 7", "operation flag_type.get", "caller ci", "user agent ci/*", "12.5 % of the callers",
	}
	if got := rule.Conditions(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Rule{}).Conditions(); len(got) > 0 {
		t.Errorf("a rule without conditions has %q", got)
	}
}
