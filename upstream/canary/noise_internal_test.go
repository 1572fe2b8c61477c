package canary

import (
	"fmt"
	"testing"
	"time"

	"portico/mapping"
)

func at(class Class, path string) Difference {
	return Difference{Class: class, Path: path, Pointer: path}
}

func TestNoiseIsBelievedAfterASecondTime(t *testing.T) {
	n, now := newNoise(10), time.Now()
	varied := []Difference{at(ClassValue, "$.a"), at(ClassValue, "$.a"), at(ClassMissing, "$.b"), {Class: ClassValue, Path: "$.c", Rule: "r"}}
	known := func(class Class, path string, when time.Time) bool {
		return n.known("old", mapping.OpFlagTypes, at(class, path), when)
	}
	n.learn("old", mapping.OpFlagTypes, varied, now)
	if known(ClassValue, "$.a", now) {
		t.Error("one time was enough")
	}
	n.learn("old", mapping.OpFlagTypes, varied, now)
	for _, c := range []struct {
		class Class
		path  string
		after time.Duration
		want  bool
	}{
		{ClassValue, "$.a", 0, true},
		{ClassTime, "$.a", 0, true}, // of the same family
		{ClassOrder, "$.a", 0, false},
		{ClassType, "$.a", 0, false},
		{ClassMissing, "$.a", 0, false},
		{ClassMissing, "$.b", 0, false}, // never noise
		{ClassValue, "$.c", 0, false},   // a rule explained it
		{ClassValue, "$.a", noiseLife, false},
	} {
		if got := known(c.class, c.path, now.Add(c.after)); got != c.want {
			t.Errorf("%s at %s after %v: %v", c.class, c.path, c.after, got)
		}
	}
	if n.known("old", mapping.OpAttachment, at(ClassValue, "$.a"), now) || n.known("new", mapping.OpFlagTypes, at(ClassValue, "$.a"), now) {
		t.Error("noise of one operation and tracker counts for another")
	}
	n.learn("old", mapping.OpFlagTypes, varied, now.Add(2*noiseLife))
	if known(ClassValue, "$.a", now.Add(2*noiseLife)) {
		t.Error("what was forgotten counts")
	}
}

func TestNoiseIsBounded(t *testing.T) {
	n, now := newNoise(10), time.Now()
	for i := range 100 {
		n.learn("old", mapping.OpFlagTypes, []Difference{at(ClassValue, fmt.Sprintf("$.a%d", i))}, now.Add(time.Duration(i)))
	}
	if len(n.paths) > 10 {
		t.Errorf("%d paths are remembered", len(n.paths))
	}
	if n.paths[noisePath{"old", mapping.OpFlagTypes, "$.a99", "value"}] == nil {
		t.Error("the latest was forgotten")
	}
}

func TestSift(t *testing.T) {
	lasting := []Difference{at(ClassValue, "$.a"), at(ClassValue, "$.b"), at(ClassMissing, "$.c"), at(ClassNull, "$.d"), at(ClassOrder, "$.e")}
	varied := []Difference{at(ClassTime, "$.a"), at(ClassMissing, "$.c"), at(ClassValue, "$.e")}
	changed := []Difference{at(ClassValue, "$.b"), at(ClassValue, "$.c"), at(ClassType, "$.d")}
	got := sift(lasting, varied, changed)
	if got.noisy != 1 || got.moved != 2 || len(got.confirmed) != 2 || got.confirmed[0].Path != "$.c" || got.confirmed[1].Path != "$.e" {
		t.Errorf("got %+v", got)
	}
}

func TestWaitingIsInOrderAndBounded(t *testing.T) {
	w, now := newWaiting(3), time.Now()
	for i, after := range []int{3, 1, 2, 4} {
		if fits := w.push(&job{at: now.Add(time.Duration(after) * time.Second)}); fits != (i < 3) {
			t.Errorf("job %d: %v", i, fits)
		}
	}
	if j, wait := w.pop(now); j != nil || wait != time.Second {
		t.Errorf("a job came %v too early", wait)
	}
	for after := 1; after <= 3; after++ {
		if j, _ := w.pop(now.Add(time.Minute)); j == nil || !j.at.Equal(now.Add(time.Duration(after)*time.Second)) {
			t.Errorf("the wrong job came as number %d", after)
		}
	}
	if j, wait := w.pop(now); j != nil || wait <= 0 || w.any() != nil || w.len() != 0 {
		t.Error("there is a job too many")
	}
}

func TestBudget(t *testing.T) {
	var b budget
	if b.take(1) {
		t.Error("nothing can be taken of nothing")
	}
	b.give(10)
	if !b.take(10) || b.take(1) {
		t.Error("ten are not ten")
	}
	b.give(10)
	if b.left.Load() != 10 {
		t.Errorf("%d are left", b.left.Load())
	}
}

// TestLedgerIsBounded: what waits to be written is bounded, and nothing of it is lost but findings.
func TestLedgerIsBounded(t *testing.T) {
	l := newLedger(Options{})
	for i := range 3 * mostFindings {
		l.record(&found{})
		f := &found{}
		f.Signature = fmt.Sprint(i)
		l.record(f)
	}
	if len(l.book.findings) > mostFindings {
		t.Errorf("%d findings wait", len(l.book.findings))
	}
	begin := time.Now()
	for i := range 3 * mostTallies {
		l.tally(subject{operation: mapping.OpFlagTypes}, begin.Add(time.Duration(i)*time.Minute)).Compared++
	}
	sum := int64(0)
	for _, tally := range l.book.tallies {
		sum += tally.Compared
	}
	if len(l.book.tallies) > mostTallies+4 || sum != 3*mostTallies {
		t.Errorf("%d tallies of %d comparisons wait", len(l.book.tallies), sum)
	}
}
