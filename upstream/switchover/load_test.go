package switchover

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// TestMovingUnderLoad moves products and shares of the callers there and back
// while each caller writes and reads at once what it wrote.
func TestMovingUnderLoad(t *testing.T) {
	const callers, rounds = 8, 150
	next := new(atomic.Int64)
	old, candidate := newBook(next), newBook(next)
	s, err := New(t.Context(), Options{
		Old: "old", New: "new", Store: openStore(t, ":memory:"), Settings: Settings{
			Shadow: blind{}, Logger: slog.New(slog.DiscardHandler), Observer: unobserved, Caller: unnamed,
			Table: Table{Rules: []Rule{always(PhaseOld, PhaseOld)}}, Follow: time.Minute, UnknownOutcome: time.Minute,
			Trackers: map[string]upstream.Tracker{"old": old, "new": candidate}, Locate: map[string]Locator{"old": old, "new": candidate},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var working, moving sync.WaitGroup
	done := make(chan struct{})
	moving.Go(func() { moveAbout(t, s, done) })
	for i := range callers {
		working.Go(func() {
			for round := range rounds {
				if err := writeAndRead(t, s, i, fmt.Sprint("write ", i, ".", round)); err != nil {
					t.Errorf("caller %d, round %d: %v", i, round, err)
					return
				}
			}
		})
	}
	working.Wait()
	close(done)
	moving.Wait()
	seen := map[string]int{}
	for _, what := range append(old.wrote, candidate.wrote...) {
		seen[what]++
	}
	if len(seen) != callers*rounds || len(old.wrote)+len(candidate.wrote) != callers*rounds || len(candidate.wrote) == 0 || len(old.wrote) == 0 {
		t.Errorf("%d writes are in the trackers, %d and %d times", len(seen), len(old.wrote), len(candidate.wrote))
	}
}

// moveAbout changes the rules until it is told to end.
func moveAbout(t *testing.T, s *Switchover, done <-chan struct{}) {
	lists := [][]Rule{
		{moved(Rule{Products: []string{"P1", "P3"}}), always(PhaseOld, PhaseOld)},
		{moved(Rule{Percent: new(30.0)}), always(PhaseOld, PhaseOld)},
		{always(PhaseNew, PhaseOld)}, {always(PhaseNew, PhaseNew)}, {always(PhaseOld, PhaseOld)},
	}
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		table := Table{Rules: lists[i%len(lists)]}
		if err := s.Change(t.Context(), s.Status(t.Context()).Version, table, nil, "a test", "to move"); err != nil {
			t.Error(err)
			return
		}
	}
}

// writeAndRead attaches something to the caller's own bug and looks for it.
func writeAndRead(t *testing.T, s *Switchover, who int, what string) error {
	bug, as := fmt.Sprint(who+1), caller(fmt.Sprint("key ", who))
	if _, err := s.Do(t.Context(), as, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{bug}, Summary: &what}}); err != nil {
		return err
	}
	reply, err := s.Do(t.Context(), as, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{bug}}})
	if err != nil {
		return err
	}
	var all shown
	text, err := reply.Load(jsonblob.SplitOptions{})
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return err
	}
	for _, note := range all.Bugs[bug] {
		if note == what {
			return nil
		}
	}
	return fmt.Errorf("%q is not among %d attachments", what, len(all.Bugs[bug]))
}
