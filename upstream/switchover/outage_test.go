package switchover

import (
	"context"
	"fmt"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
)

// ofAttachment changes attachments without any lookup, as a rule names them.
func ofAttachment(first int64) Rule {
	return moved(Rule{Attachments: []Range{{From: first}}})
}

// patient gives a call as much time as clients have.
func patient(t *testing.T, patience time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// wantBug reads the attachments of a bug.
func wantBug(t *testing.T, ctx context.Context, s *Switchover, who upstream.Caller, bug string) {
	t.Helper()
	reply, err := s.Do(ctx, who, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{bug}, Include: []string{"id"}}})
	if got := process.Text(t, reply.Document, err); got == "" {
		t.Errorf("nothing is said of bug %s", bug)
	}
}

// TestAWriteToACandidateThatHangsFailsNoOtherRead writes at the candidate, which
// then answers nobody.
func TestAWriteToACandidateThatHangsFailsNoOtherRead(t *testing.T) {
	s, _, candidate := over(t, true, ofAttachment(1), always(PhaseOld, PhaseOld))
	dev := caller(tracker.FixtureKeys()["dev"])
	if reply, err := s.Do(t.Context(), dev, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1}, Summary: new("moved")}}); err != nil || reply.Close() != nil {
		t.Fatal(err)
	}
	candidate.SetFaults([]tracker.Fault{{Kind: tracker.FaultHangBefore}})
	began := time.Now()
	wantBug(t, patient(t, time.Minute), s, dev, "2")
	if took := time.Since(began); took < lookupsTime/2 || took > 3*lookupsTime {
		t.Errorf("the read took %v, of which the lookups may take %v", took, lookupsTime)
	}
}

func TestWhatACallerWroteIsLookedUpOnce(t *testing.T) {
	const writes = 85 // each of an attachment that there is
	b := openBench(t, ofAttachment(10), always(PhaseOld, PhaseOld))
	for i := range writes {
		b.do(t, "k", changing(int64(10+i)))
	}
	asked := map[string]int{}
	for rounds := 0; len(asked) < writes+1; rounds++ {
		b.by(t, "k", ofBugs("none of both"))
		now := b.beyond.taken()
		if len(now) > maxWriteLookups || rounds > writes {
			t.Fatalf("read %d asks %d times, %d of %d are known", rounds, len(now), len(asked), writes)
		}
		for _, what := range now {
			if asked[what]++; asked[what] > 1 && what != "bug none of both" {
				t.Fatalf("asked again for %s", what)
			}
		}
	}
}

func TestNewAttachmentsAreNotLookedUp(t *testing.T) {
	b := openBench(t, moved(Rule{Bugs: []Range{{From: 5, To: 6}}}), always(PhaseOld, PhaseOld))
	for range 30 {
		b.do(t, "k", attachTo("5", "6"))
		b.do(t, "k", attachTo("5"))
	}
	b.do(t, "k", changing(51))
	b.beyond.taken()
	for bug, want := range map[string]string{"1": "old", "5": "new", "6": "new"} {
		b.wantBy(t, "k", ofBugs(bug), want, "")
	}
	if asked := b.beyond.taken(); len(asked) != 0 {
		t.Errorf("asked for %q", asked)
	}
}

// TestComparingAsksOnlyWhoAnswers has a candidate hang that is only compared.
func TestComparingAsksOnlyWhoAnswers(t *testing.T) {
	compared := Rule{Name: "compared", Products: []string{"TestProduct"}, Reads: PhaseOldCompare, Writes: PhaseOld}
	s, _, candidate := over(t, true, compared, always(PhaseOld, PhaseOld))
	candidate.SetFaults([]tracker.Fault{{Kind: tracker.FaultHangBefore}})
	short := patient(t, 10*time.Second)
	wantBug(t, short, s, caller(tracker.FixtureKeys()["dev"]), "1")
	_, err := s.Do(short, caller(tracker.FixtureKeys()["dev"]), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"99999"}}})
	if said, ok := err.(*mapping.Error); !ok || said.Code != 101 {
		t.Errorf("a bug that does not exist: %v", err)
	}
	if asked := len(candidate.Requests()); asked != 0 {
		t.Errorf("the candidate was asked %v", candidate.Requests())
	}
}

// TestReadsOfAMovedProductWithoutTheOldTracker looks up in the old tracker first,
// which does not answer.
func TestReadsOfAMovedProductWithoutTheOldTracker(t *testing.T) {
	for _, kind := range []tracker.FaultKind{tracker.FaultResetBefore, tracker.FaultHangBefore} {
		t.Run(string(kind), func(t *testing.T) {
			s, old, candidate := over(t, true, moved(Rule{Products: []string{"TestProduct"}}), always(PhaseOld, PhaseOld))
			old.SetFaults([]tracker.Fault{{Kind: kind}})
			dev := caller(tracker.FixtureKeys()["dev"])
			wantBug(t, patient(t, 4*time.Second), s, dev, "1")
			reply, err := s.Do(patient(t, 4*time.Second), dev, upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{"1"}, Include: []string{"id"}}})
			process.Text(t, reply.Document, err)
			// Bug 6 is in a product that has not moved: what the candidate has of it is not
			// the answer.
			_, err = s.Do(patient(t, time.Second), dev, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"6"}}})
			if said, ok := err.(*mapping.Error); !ok || said.Status < 500 {
				t.Errorf("a bug of the old tracker: %v", err)
			}
			_, err = s.Do(patient(t, time.Second), dev, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1}, Summary: new("s")}})
			if err == nil || len(candidate.Journal()) != 0 {
				t.Errorf("a write was sent on a guess: %v", err)
			}
		})
	}
}

// TestAKeyThatIsNotTakenIsTheTrackersToRefuse changes attachments with a wrong key.
func TestAKeyThatIsNotTakenIsTheTrackersToRefuse(t *testing.T) {
	s, old, candidate := over(t, true, moved(Rule{Products: []string{"TestProduct"}}), always(PhaseOld, PhaseOld))
	wrong := caller(fmt.Sprintf("%040d", 7))
	_, want := s.rules.Load().Trackers["old"].Do(t.Context(), wrong, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1}, Summary: new("s")}})
	_, got := s.Do(t.Context(), wrong, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1}, Summary: new("s")}})
	if want == nil || got == nil || want.Error() != got.Error() {
		t.Errorf("got %v, want what the tracker says: %v", got, want)
	}
	if said, ok := got.(*mapping.Error); !ok || said.Code != 306 {
		t.Errorf("got %+v", said)
	}
	if len(old.Journal())+len(candidate.Journal()) != 0 {
		t.Error("it was carried out")
	}
}

// TestNothingIsReadOnAGuess: the tracker that is asked first cannot say where a bug belongs. By what the other one says it
// would be the first one's, and that may be wrong.
func TestNothingIsReadOnAGuess(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	for product, want := range map[string]error{"P2": errDown, "P1": nil} {
		b.beyond.extra = map[string]mapping.Place{"88": {Bug: 88, Product: product, Component: "C"}}
		b.Switchover.memory = newMemory()
		if answer := ofBugs("88").Make(t.Context(), b.Switchover, caller("k")); answer.Err != want {
			t.Errorf("for a bug in %s: got %v, want %v", product, answer.Err, want)
		}
		if calls := b.old.taken(); len(calls) != 0 {
			t.Errorf("for a bug in %s the old tracker was asked %v", product, calls)
		}
	}
}
