package switchover

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// TestABugIsTheSameByItsAlias begins a write under former rules and another one of
// the same bug, named otherwise, under the next.
func TestABugIsTheSameByItsAlias(t *testing.T) {
	product := moved(Rule{Products: []string{"P1"}})
	for name, c := range map[string]struct {
		before, after []Rule
		first, second string
		waits         bool
	}{
		"by alias and then by id":      {[]Rule{always(PhaseOld, PhaseOld)}, []Rule{always(PhaseNew, PhaseNew)}, "bug-1", "1", true},
		"by id and then by alias":      {[]Rule{always(PhaseOld, PhaseOld)}, []Rule{always(PhaseNew, PhaseNew)}, "1", "bug-1", true},
		"where the alias is looked up": {[]Rule{always(PhaseOld, PhaseOld)}, []Rule{product, always(PhaseOld, PhaseOld)}, "1", "bug-1", true},
		"another bug, by ids":          {[]Rule{always(PhaseOld, PhaseOld)}, []Rule{always(PhaseNew, PhaseNew)}, "1", "2", false},
		"another bug, looked up":       {[]Rule{always(PhaseOld, PhaseOld)}, []Rule{product, always(PhaseOld, PhaseOld)}, "2", "bug-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBench(t, c.before...)
			b.old.hold, b.old.begun = make(chan struct{}), make(chan struct{}, 1)
			first := make(chan error, 1)
			go func() {
				first <- attachTo(c.first).Make(context.WithoutCancel(t.Context()), b.Switchover, caller("a")).Err
			}()
			<-b.old.begun
			b.change(t, c.after...)
			short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			err := attachTo(c.second).Make(short, b.Switchover, caller("b")).Err
			if said, ok := err.(*mapping.Error); c.waits && (!ok || said.Reason != mapping.ReasonSwitchover) || !c.waits && err != nil {
				t.Errorf("got %v", err)
			}
			close(b.old.hold)
			if err := <-first; err != nil {
				t.Error(err)
			}
			b.do(t, "b", attachTo(c.second))
			if left := len(b.inFlight.writes); left != 0 {
				t.Errorf("%d writes are still in flight", left)
			}
		})
	}
}

func TestAKeyIsTheSameCallerAsABearerToken(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	bearer := upstream.Caller{Credentials: upstream.Credentials{APIKey: "k", Authorization: "Bearer k"}}
	text(t, attachTo("1").Make(t.Context(), b.Switchover, bearer).Document, nil)
	b.change(t, always(PhaseNew, PhaseNew))
	if got := b.by(t, "k", ofBugs("1")); got != "old" {
		t.Errorf("what was written with a bearer token is read with the key in the %s tracker", got)
	}
	other := caller("k")
	other.Credentials.Authorization = "Bearer another"
	if (&callInfo{caller: &bearer}).identity() == (&callInfo{caller: &other}).identity() {
		t.Error("two credentials are one caller")
	}
}

// holding has a write of bug 1 be under way at a tracker, and gives what ends it.
func (b *bench) holding(t *testing.T, at *fake, key string) (end func()) {
	t.Helper()
	at.hold, at.begun = make(chan struct{}), make(chan struct{}, 1)
	first := make(chan error, 1)
	go func() { first <- attachTo("1").Make(context.WithoutCancel(t.Context()), b.Switchover, caller(key)).Err }()
	<-at.begun
	return func() {
		close(at.hold)
		if err := <-first; err != nil {
			t.Error(err)
		}
	}
}

// soon is do for a call that nothing may hold up.
func (b *bench) soon(t *testing.T, key string, call upstream.Call) {
	t.Helper()
	if answer := call.Make(patient(t, 20*time.Second), b.Switchover, caller(key)); answer.Err != nil {
		t.Error(answer.Err)
	}
}

// TestAfterAKillNoWriteWaits for one that is still under way at the tracker that burns.
func TestAfterAKillNoWriteWaits(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	end := b.holding(t, b.new, "a")
	defer end()
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	b.soon(t, "b", attachTo("1"))
	if calls := b.old.taken(); len(calls) != 1 {
		t.Errorf("the old tracker got %d writes, want 1", len(calls))
	}
}

// TestUnderTheSameRulesNoWriteWaits: callers may write one bug in two trackers, if that is what the rules say.
func TestUnderTheSameRulesNoWriteWaits(t *testing.T) {
	b := openBench(t, moved(Rule{Callers: []string{"ci"}}), always(PhaseOld, PhaseOld))
	end := b.holding(t, b.old, "a")
	defer end()
	b.soon(t, "key-ci", attachTo("1"))
	if calls := b.new.taken(); len(calls) != 1 {
		t.Errorf("the new tracker got %d writes, want 1", len(calls))
	}
}

// TestAWriteThatMayStillBeCarriedOutIsWaitedFor: that nobody waits for it any longer does not mean that it has ended.
func TestAWriteThatMayStillBeCarriedOutIsWaitedFor(t *testing.T) {
	lost := &mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonTimeout, Unknown: true, Message: "lost"}
	gone := &mapping.Error{Code: 200503, Status: 503, Reason: mapping.ReasonCanceled, Message: "given up"}
	said := &mapping.Error{Code: 100, Status: 400, Message: "no"}
	for name, c := range map[string]struct {
		err   error
		waits bool
	}{"its answer is lost": {lost, true}, "the client hung up": {gone, true}, "refused": {said, false}, "never sent": {errDown, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBench(t, always(PhaseOld, PhaseOld))
			b.set(t, func(s *Settings) { s.UnknownOutcome = 300 * time.Millisecond })
			b.old.failing(c.err)
			if err := attachTo("1").Make(t.Context(), b.Switchover, caller("a")).Err; err == nil {
				t.Fatal("the first write did not fail")
			}
			b.change(t, always(PhaseNew, PhaseNew))
			short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			if err := attachTo("1").Make(short, b.Switchover, caller("b")).Err; (err != nil) != c.waits {
				t.Errorf("the second write at once: %v", err)
			}
			b.soon(t, "b", attachTo("1"))
			if f := &b.inFlight; len(f.writes) != 0 || f.objects != 0 {
				t.Errorf("%d writes are still in flight, with %d objects", len(f.writes), f.objects)
			}
		})
	}
}

// TestUnknownOutcomesAreBounded by how many objects they are about: what is beyond the bound is not waited for.
func TestUnknownOutcomesAreBounded(t *testing.T) {
	const each, times = 100, maxInFlight/100 + 5
	b := openBench(t, always(PhaseOld, PhaseOld))
	b.old.failing(context.Canceled)
	ids := make([]int64, each)
	for n := range int64(times) {
		for i := range ids {
			ids[i] = 1 + n*each + int64(i)
		}
		_ = changing(ids...).Make(t.Context(), b.Switchover, upstream.Caller{})
		b.old.taken()
	}
	if f := &b.inFlight; len(f.writes) != maxInFlight/each || f.objects != maxInFlight {
		t.Errorf("%d writes with %d objects are waited for, want %d", len(f.writes), f.objects, maxInFlight)
	}
}

// TestNamesThatNoBugHasAreNotWaitedFor: somebody who hangs up could fill the memory with them.
func TestNamesThatNoBugHasAreNotWaitedFor(t *testing.T) {
	const times, length, most = 100, 1 << 20, 16 << 20
	b := openBench(t, always(PhaseOld, PhaseOld))
	b.old.failing(context.Canceled)
	before := heap()
	for i := range times {
		name := strings.Repeat("x", length) + strconv.Itoa(i)
		_ = attachTo(name, "1").Make(t.Context(), b.Switchover, upstream.Caller{})
		b.old.taken()
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d long names took %d bytes", times, grown)
	}
	for w := range b.inFlight.writes {
		if len(w.objects) != 1 || w.objects[0].alias != "" {
			t.Errorf("the objects %v are waited for", w.objects)
		}
	}
}

// TestAKillReachesWritesThatWait for one that is under way at the tracker that burns.
func TestAKillReachesWritesThatWait(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	end := b.holding(t, b.new, "a")
	defer end()
	b.change(t, always(PhaseOld, PhaseOld))
	waiting := make(chan error, 1)
	go func() {
		waiting <- attachTo("1").Make(patient(t, 20*time.Second), b.Switchover, caller("b")).Err
	}()
	time.Sleep(20 * time.Millisecond) // most of the time it waits by then, and otherwise nothing is shown
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// hanging is a locator that answers nothing before its caller gives up.
type hanging struct {
	Locator
	asked chan struct{}
}

func (h *hanging) Bug(ctx context.Context, _ upstream.Caller, _ string) (mapping.Place, error) {
	h.asked <- struct{}{}
	<-ctx.Done()
	return mapping.Place{}, errDown
}

// TestAKillReachesWritesThatAreLookedUp at a tracker that hangs.
func TestAKillReachesWritesThatAreLookedUp(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	locator := &hanging{asked: make(chan struct{}, 1)}
	b.set(t, func(s *Settings) { s.Locate["old"] = locator })
	written := make(chan error, 1)
	go func() { written <- attachTo("1").Make(patient(t, 20*time.Second), b.Switchover, caller("b")).Err }()
	<-locator.asked
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil || len(b.old.taken()) != 1 {
		t.Error("the write did not go to the old tracker: ", err)
	}
}
