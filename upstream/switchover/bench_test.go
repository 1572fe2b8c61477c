package switchover

import (
	"context"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// still is a tracker that answers at once.
type still struct {
	upstream.Tracker
	reply mapping.Reply
}

func (s *still) Do(context.Context, upstream.Caller, upstream.Call) (mapping.Reply, error) {
	return s.reply, nil
}

func (s *still) Peek(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
	return s.reply, nil
}

func openStill(t testing.TB, rules ...Rule) *Switchover {
	t.Helper()
	tracker := &still{reply: mapping.Reply{Document: mapping.NewDocument([]byte("{}"))}}
	return openUntilEnd(t, Options{Old: "old", New: "new", Store: openStore(t, ":memory:"), Settings: settingsOver(tracker, tracker, nil, nil, rules...)}, time.Now, time.Second)
}

// hotRules are lists under which a flag type read needs no lookup.
func hotRules() map[string][]Rule {
	return map[string][]Rule{
		"one":      {always(PhaseOld, PhaseOld)},
		"products": {moved(Rule{Products: []string{"P1", "P2", "P3", "P4"}}), always(PhaseOld, PhaseOld)},
		"percent":  {moved(Rule{Percent: new(10.0)}), always(PhaseOld, PhaseOld)},
		"eight": {
			{Name: "a", Products: []string{"A"}, Reads: PhaseNew, Writes: PhaseOld}, {Name: "b", Products: []string{"B"}, Reads: PhaseNew, Writes: PhaseOld},
			{Name: "c", Products: []string{"C"}, Reads: PhaseNew, Writes: PhaseOld}, {Name: "d", Bugs: []Range{{1, 100}}, Reads: PhaseNew, Writes: PhaseOld},
			{Name: "e", Operations: []mapping.Operation{mapping.OpAttachment}, Reads: PhaseNew, Writes: PhaseOld},
			{Name: "f", UserAgents: []string{"git/*"}, Reads: PhaseNew, Writes: PhaseOld},
			{Name: "g", Percent: new(10.0), Reads: PhaseNew, Writes: PhaseOld}, always(PhaseOld, PhaseOld),
		},
	}
}

func TestAPeekWithoutLookupsAllocatesNothing(t *testing.T) {
	for name, rules := range hotRules() {
		s := openStill(t, rules...)
		ctx, who, request := t.Context(), caller("a key of forty characters as they have it"), mapping.FlagTypesRequest{Product: "TestProduct"}
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := s.Peek(ctx, who, request); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
