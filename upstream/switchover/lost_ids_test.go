package switchover

import (
	"testing"

	"portico/upstream"
)

// The path's bug wins over ids that do not name it, whether it is written as a number or as an alias: what loses is not
// written, so it is no reason to refuse.
func TestIDsThatLoseAgainstThePathDivideNothing(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	attach := func(path string, ids ...string) upstream.Call {
		call := attachTo(ids...)
		call.CreateAttachment.PathBug = path
		return call
	}
	for want, call := range map[string]upstream.Call{
		"new": attach("bug-1", "2", "bug-3"), "old": attach("2", "bug-1"),
	} {
		if got := b.by(t, "k", call); got != want {
			t.Errorf("%v goes to the %s tracker, want %s", line(call), got, want)
		}
		b.do(t, "k", call)
	}
	for _, sent := range append(b.old.taken(), b.new.taken()...) {
		if create := sent.CreateAttachment; create.PathBug != "" || len(create.Bugs) != 1 || !create.Conflict {
			t.Errorf("%v is sent with the bugs %q, and is not settled", line(sent), create.Bugs)
		}
	}
	if got := b.by(t, "k", ofBugs("2")); got != "old" {
		t.Errorf("a read of the bug that lost follows the write to the %s tracker", got)
	}
	named := attach("bug-1", "2", "1").Make(t.Context(), b.Switchover, caller("k"))
	wantRefused(t, named.Err, "old: bug 2", `new: bug "bug-1", bug 1`)
	doubtful := attach("bug-1", "2", "none").Make(t.Context(), b.Switchover, caller("k"))
	wantRefused(t, doubtful.Err, "old: bug 2")
}
