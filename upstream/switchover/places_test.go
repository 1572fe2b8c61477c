package switchover

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestLongReferencesAreNotRemembered asks for bugs and flag types by names that
// somebody made up to fill the memory.
func TestLongReferencesAreNotRemembered(t *testing.T) {
	const times, length, most = 100, 900_000, 16 << 20
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	before := heap()
	for i := range times {
		zeros := strings.Repeat("0", length) + fmt.Sprint(i)
		// The atlas takes a number with any zeros before it.
		_, _ = b.explain(t.Context(), caller("k"), ofBugs("bug-"+zeros))
		call := upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}, Names: []string{zeros}}}
		err := call.Make(t.Context(), b.Switchover, caller("k")).Err
		wantRefused(t, err, "flag type", "…")
		if len(err.Error()) > 1000 {
			t.Fatalf("the error echoes %d bytes", len(err.Error()))
		}
		b.atlas.taken()
		b.beyond.taken()
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d requests with names of %d bytes leave %d bytes", times, length, grown)
	}
	runtime.KeepAlive(b)
}

func TestFlagTypesThatAreNowhereAreAskedForAgain(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	wantRefused(t, changingTypes(99).Make(t.Context(), b.Switchover, caller("k")).Err, `flag type "99"`)
	b.atlas.types[99] = mapping.Scopes{{Product: "P1"}}
	b.wantBy(t, "k", changingTypes(99), "new", "which was made a moment ago")
}
