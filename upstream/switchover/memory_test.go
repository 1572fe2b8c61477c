package switchover

import (
	"testing"

	"portico/upstream"
)

// TestReadsAfterOwnWritesAreNotCompared: what was just written on one side is not on the other.
func TestReadsAfterOwnWritesAreNotCompared(t *testing.T) {
	seen := &shadow{}
	b := openBench(t, always(PhaseNewCompare, PhaseOld))
	b.set(t, func(s *Settings) { s.Shadow = seen })
	b.do(t, "k", attachTo("1"))
	for _, c := range []struct {
		read upstream.Call
		by   *fake
		told int
	}{{ofBugs("1"), b.old, 0}, {ofBugs("2"), b.new, 1}} {
		b.old.taken()
		b.new.taken()
		b.do(t, "k", c.read)
		if calls, told := c.by.taken(), seen.taken(); len(calls) != 1 || len(told) != c.told {
			t.Errorf("%s: %s was asked %d times, and the shadow told %v", line(c.read), c.by.name, len(calls), told)
		}
	}
}
