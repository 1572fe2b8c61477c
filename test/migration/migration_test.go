package migration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"portico/test/tracker"
	"portico/upstream/switchover"
)

// callers makes clients, each with a credential of its own: keys, and tokens of as many logins as are needed.
func (s *scene) callers(t *testing.T, many int) []*caller {
	t.Helper()
	keys := tracker.Keys(tracker.SeedFixture)
	all := []*caller{
		{name: "dev", key: keys["dev@example.com"]}, {name: "editor", key: keys["editor@example.com"]}, {name: "admin", key: keys["admin@example.com"]},
	}
	for n := len(all); n < many; n++ {
		all = append(all, &caller{name: fmt.Sprintf("dev-%d", n), token: s.login(t, "dev@example.com")})
	}
	for i, c := range all {
		c.base, c.http, c.random = s.Clients, &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}, rand.New(rand.NewPCG(uint64(i), 1))
		t.Cleanup(c.http.CloseIdleConnections)
	}
	return all
}

// login gives a new token of a user, through Portico.
func (s *scene) login(t *testing.T, user string) string {
	t.Helper()
	response, err := http.Get(s.Clients + "/rest/login?login=" + user + "&password=password1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("a login gave %d: %v", response.StatusCode, err)
	}
	return answer.Token
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
		return switchover.Rule{Name: "tenth", Percent: &share, Reads: reads, Writes: writes}
	}
	return []step{
		{"compare", []switchover.Rule{product(oldCompare, old), tenth(oldCompare, old)}},
		{"read the product there", []switchover.Rule{product(newCompare, old)}},
		{"write it there", []switchover.Rule{product(newCompare, next)}},
		{"a tenth too", []switchover.Rule{product(next, next), tenth(next, next)}},
		{"the tenth goes back", []switchover.Rule{product(next, next), tenth(oldCompare, old)}},
		{"the product is written at the old one again", []switchover.Rule{product(newCompare, old)}},
		{"all is as before", nil},
	}
}

func TestAProductAndATenthMoveAndComeBack(t *testing.T) {
	s := set(t)
	callers := s.callers(t, 40)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for i, c := range callers {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(c.random.IntN(20)) * time.Millisecond):
				}
				if i == 1 && n%5 == 0 {
					c.flagType("TestProduct")
					continue
				}
				c.round([]int{1, 7, 8, 6, 10})
			}
		})
	}
	for _, next := range move() {
		time.Sleep(settle)
		s.change(t, next.reason, next.rules...)
	}
	time.Sleep(settle)
	close(stop)
	load.Wait()
	s.judge(t, callers)
}

// judge holds what clients were told against what the trackers did.
func (s *scene) judge(t *testing.T, callers []*caller) {
	t.Helper()
	where, made, shown := s.journals(), 0, 0
	told := map[string]int{}
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
