package switchover

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

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
		_, _ = b.Explain(t.Context(), caller("k"), ofBugs("bug-"+zeros))
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

func TestWhatIsRememberedOfPlacesIsBounded(t *testing.T) {
	m, now := NewMemory(), time.Unix(1, 0)
	answer := func(length int) found {
		return found{scopes: []mapping.Scopes{{{Product: strings.Repeat("p", length)}}}}
	}
	m.keep(placeKey{what: "too large"}, answer(mostOnePlace), now.Add(time.Second))
	if len(m.places.entries) != 0 {
		t.Error("an answer out of all proportion is remembered")
	}
	for i := range 1000 {
		m.keep(placeKey{what: fmt.Sprint(i % 900)}, answer(mostOnePlace/2), now.Add(time.Second))
	}
	sum := 0
	for key := range m.places.entries {
		answer, _ := m.place(key, now)
		sum += len(answer.scopes[0][0].Product)
	}
	if held := len(m.places.entries); held < 100 || sum > mostPlaceBytes || m.places.weight < sum || m.places.weight > mostPlaceBytes {
		t.Errorf("%d answers of %d bytes are remembered, counted as %d", held, sum, m.places.weight)
	}
	m.sweep(now, now.Add(time.Second))
	if len(m.places.entries) != 0 || m.places.weight != 0 {
		t.Errorf("%d answers of %d bytes are left when none is believed", len(m.places.entries), m.places.weight)
	}
}

func TestFlagTypesThatAreNowhereAreAskedForAgain(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	wantRefused(t, changingTypes(99).Make(t.Context(), b.Switchover, caller("k")).Err, "flag type 99")
	if held := len(b.memory.places.entries); held != 0 {
		t.Errorf("%d answers that say nothing are remembered", held)
	}
	b.atlas.types[99] = mapping.Scopes{{Product: "P1"}}
	if got := b.by(t, "k", changingTypes(99)); got != "new" {
		t.Errorf("a flag type that was made a moment ago is changed in the %s tracker", got)
	}
}
