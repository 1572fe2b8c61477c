package switchover_test

import (
	"slices"
	"testing"

	"portico/upstream/switchover"
)

// A move of writes is announced in a revision of its own, and may be given up in another one.
func TestChangesOfABarrier(t *testing.T) {
	rules := []switchover.Rule{{Name: "webshop", Reads: switchover.PhaseNew, Writes: switchover.PhaseOld}}
	before, waiting := switchover.Table{Rules: rules}, switchover.Table{Rules: rules, Moving: []string{"webshop"}}
	moved := switchover.Table{Rules: []switchover.Rule{{Name: "webshop", Reads: switchover.PhaseNew, Writes: switchover.PhaseNew}}}
	for _, c := range []struct {
		from, to switchover.Table
		want     string
	}{
		{before, waiting, "writes wait while they move: webshop"}, {waiting, before, "writes go on as before"}, {waiting, moved, "webshop: writes old → new"},
	} {
		if got := switchover.Changes(c.from, c.to); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
