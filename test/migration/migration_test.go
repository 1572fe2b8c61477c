package migration

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/switchover"
)

// callers makes clients, each a user of its own.
func (s *scene) callers(t *testing.T) []*caller {
	t.Helper()
	all := []*caller{{name: "editor", key: tracker.Keys(tracker.SeedFixture)["editor@example.com"]}}
	for n := range numbered {
		all = append(all, &caller{name: fmt.Sprintf("user-%d", n), key: tracker.UserKey(n)})
	}
	for i, c := range all {
		c.base, c.http, c.random = s.Clients, &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}, rand.New(rand.NewPCG(uint64(i), 1))
		t.Cleanup(c.http.CloseIdleConnections)
	}
	return all
}

// step is a set of rules that counts for a while.
type step struct {
	reason string
	rules  []switchover.Rule
}

// move is a product and a tenth of the callers to the new tracker, and back.
func move() []step {
	const old, oldCompare, newCompare, next = switchover.PhaseOld, switchover.PhaseOldCompare, switchover.PhaseNewCompare, switchover.PhaseNew
	product := func(reads, writes switchover.Phase) switchover.Rule {
		return switchover.Rule{Name: "product", Products: []string{"TestProduct"}, Reads: reads, Writes: writes}
	}
	tenth := func(reads, writes switchover.Phase) switchover.Rule {
		share := 10.0
		return switchover.Rule{Name: "first", Percent: &share, Reads: reads, Writes: writes}
	}
	return []step{
		{"compare", []switchover.Rule{product(oldCompare, old), tenth(oldCompare, old)}},
		{"read the product there", []switchover.Rule{product(newCompare, old)}},
		{"write it there", []switchover.Rule{product(newCompare, next)}},
		{"a tenth too", []switchover.Rule{product(next, next), tenth(next, next)}},
		{"and stay there for a while", []switchover.Rule{product(newCompare, next), tenth(next, next)}},
		{"the tenth goes back", []switchover.Rule{product(next, next), tenth(oldCompare, old)}},
		{"the product is written at the old one again", []switchover.Rule{product(newCompare, old)}},
		{"all is as before", nil},
	}
}

func TestAProductAndATenthMoveAndComeBack(t *testing.T) {
	s := set(t)
	callers := s.callers(t)
	stop := make(chan struct{})
	var load sync.WaitGroup
	var rounds atomic.Int64
	loaded := func() {
		before := rounds.Load()
		process.Eventually(t, "clients have loaded the step", func() bool { return rounds.Load() >= before+settle })
	}
	for i, c := range callers {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(c.random.IntN(200)) * time.Millisecond):
				}
				rounds.Add(1)
				if i == 0 && n%5 == 0 {
					c.flagType("TestProduct")
					continue
				}
				c.round([]int{1, 7, 8, otherBug, otherBug, 10})
			}
		})
	}
	for _, next := range move() {
		loaded()
		s.change(t, next.reason, next.rules...)
	}
	loaded()
	close(stop)
	load.Wait()
	s.judge(t, callers)
}

// moved checks that a tenth of the callers, and not all or none, wrote of other products at the new tracker. The share
// of a rule falls on the same callers in every run; whoever of them wrote of nothing else meanwhile is not counted.
func moved(t *testing.T, callers []*caller, where map[string][]string) {
	t.Helper()
	there := 0
	for _, c := range callers {
		if slices.ContainsFunc(c.elsewhere, func(id string) bool { return slices.Contains(where[id], "after") }) {
			there++
		}
	}
	t.Logf("%d of %d callers wrote of other products at the new tracker", there, len(callers))
	if there < 1 || there > numbered/5 { // a busy machine lets few callers write
		t.Errorf("%d of %d callers moved, want a tenth", there, len(callers))
	}
}

// judge holds what clients were told against what the trackers did.
func (s *scene) judge(t *testing.T, callers []*caller) {
	t.Helper()
	where, made, shown := s.journals(), 0, 0
	told := map[string]int{}
	moved(t, callers, where)
	for _, c := range callers {
		for _, fault := range c.faults {
			if shown++; shown < 10 {
				t.Error(fault)
			}
		}
		for _, id := range c.writes {
			made++
			if places := where[id]; len(places) != 1 {
				t.Errorf("write %s went to %v, want one tracker", id, places)
				continue
			}
			told[where[id][0]]++
			delete(where, id)
		}
	}
	for id, places := range where {
		t.Errorf("%v have a write %q that no client was told of", places, id)
	}
	t.Logf("%d faults; %d writes, of which %d at the old and %d at the new tracker", shown, made, told["before"], told["after"])
	if told["before"] < 100 || told["after"] < 50 {
		t.Error("too little was written for this to tell anything")
	}
}
