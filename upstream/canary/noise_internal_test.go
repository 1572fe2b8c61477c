package canary

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

func at(class Class, path string) Difference {
	return Difference{Class: class, Path: path, Pointer: path}
}

// between are the ways in which a tracker varies that gives these differences.
func between(differences ...Difference) map[varies]bool { return variations(differences) }

func TestNoiseIsBelievedAfterASecondTime(t *testing.T) {
	n, now := newNoise(10), time.Now()
	varied := between(at(ClassValue, "$.a"), at(ClassMissing, "$.b"), Difference{Class: ClassValue, Pointer: "$.c", Rule: "r"})
	known := func(class Class, pointer string, when time.Time) bool { return n.known(1, at(class, pointer), when) }
	n.learn(1, varied, now)
	if known(ClassValue, "$.a", now) {
		t.Error("one time was enough")
	}
	n.learn(1, varied, now)
	for _, c := range []struct {
		class   Class
		pointer string
		after   time.Duration
		want    bool
	}{
		{ClassValue, "$.a", 0, true},
		{ClassTime, "$.a", 0, true}, // of the same family
		{ClassOrder, "$.a", 0, false},
		{ClassType, "$.a", 0, false},
		{ClassMissing, "$.a", 0, false},
		{ClassMissing, "$.b", 0, true},
		{ClassExtra, "$.b", 0, true},
		{ClassValue, "$.b", 0, false},
		{ClassValue, "$.c", 0, false}, // a rule explained it
		{ClassValue, "$.a", noiseLife, false},
	} {
		if got := known(c.class, c.pointer, now.Add(c.after)); got != c.want {
			t.Errorf("%s at %s after %v: %v", c.class, c.pointer, c.after, got)
		}
	}
	if n.known(2, at(ClassValue, "$.a"), now) {
		t.Error("noise in the answers to one call counts for another")
	}
	n.learn(1, varied, now.Add(2*noiseLife))
	if known(ClassValue, "$.a", now.Add(2*noiseLife)) {
		t.Error("what was forgotten counts")
	}
}

func TestCallsAreToldApart(t *testing.T) {
	n := newNoise(10)
	call := func(product string) upstream.Call {
		return upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product}}
	}
	if once, again := n.callOf("old", call("P")), n.callOf("old", call("P")); once != again {
		t.Error("one call is two")
	}
	if n.callOf("old", call("P")) == n.callOf("old", call("Q")) || n.callOf("old", call("P")) == n.callOf("new", call("P")) {
		t.Error("two calls are one")
	}
}

// TestNoiseNamesWhatIsSaid: where few things can be said, only what the reference
// says itself is excused.
func TestNoiseNamesWhatIsSaid(t *testing.T) {
	raw := func(text string) jsontext.Value { return jsontext.Value(text) }
	for name, c := range map[string]struct {
		class      Class
		want, have string // of the reference and of the reference
		said       string // by the candidate
		noise      bool
	}{
		"the same status":   {ClassStatus, "200", "503", "503", true},
		"another status":    {ClassStatus, "200", "503", "404", false},
		"the same code":     {ClassCode, "0", "106", "106", true},
		"another code":      {ClassCode, "0", "106", "51", false},
		"the same type":     {ClassType, "1", `"1"`, `"7"`, true},
		"another type":      {ClassType, "1", `"1"`, "true", false},
		"another truth":     {ClassType, "1", "true", "false", true},
		"another number":    {ClassType, "1", `"1"`, "1.5", false},
		"null":              {ClassNull, "1", "null", "null", true},
		"no null":           {ClassNull, "1", "null", "2", true},
		"an answer or none": {ClassFailure, "", `"timeout"`, `"timeout"`, false},
	} {
		varied := between(Difference{Class: c.class, Pointer: "$.a", Want: raw(c.want), Have: raw(c.have)})
		d := Difference{Class: c.class, Pointer: "$.a", Have: raw(c.said)}
		if got := sift([]Difference{d}, varied, nil); (got.noisy == 1) != c.noise {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestNoiseIsBounded(t *testing.T) {
	n, now := newNoise(10), time.Now()
	n.learn(1, between(at(ClassValue, "$.kept")), now)
	for i := range 100 {
		n.learn(1, between(at(ClassValue, fmt.Sprintf("$.a%d", i)), at(ClassValue, "$.kept")), now.Add(time.Duration(i)))
	}
	if len(n.places) != 10 || n.latest.Len() != 10 {
		t.Errorf("%d places are remembered, and %d in their order", len(n.places), n.latest.Len())
	}
	if n.places[noisePlace{1, varies{"$.a99", "value"}}] == nil || !n.known(1, at(ClassValue, "$.kept"), now) {
		t.Error("the latest was forgotten")
	}
	for i := range 3 * mostBelieved {
		n.believe("", []Difference{at(ClassValue, fmt.Sprint(i))}, now)
	}
	if len(n.believed) > mostBelieved || n.doubted("", []Difference{at(ClassValue, fmt.Sprint(3*mostBelieved-1))}, now) {
		t.Errorf("%d signatures are remembered, and not the last", len(n.believed))
	}
}

func TestSift(t *testing.T) {
	lasting := []Difference{
		at(ClassValue, "$.a"), at(ClassValue, "$.b"), at(ClassMissing, "$.c"), at(ClassNull, "$.d"), at(ClassOrder, "$.e"), at(ClassMissing, "$.f"),
	}
	varied := between(at(ClassTime, "$.a"), at(ClassExtra, "$.f"), at(ClassValue, "$.e"))
	changed := []Difference{at(ClassValue, "$.b"), at(ClassValue, "$.c"), at(ClassType, "$.d")}
	got := sift(lasting, varied, changed)
	if got.noisy != 2 || got.moved != 2 || len(got.confirmed) != 2 || got.confirmed[0].Path != "$.c" || got.confirmed[1].Path != "$.e" {
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
	l := newLedger(Options{}, nil)
	for i := range 3 * mostFindings {
		l.record(&found{})
		f := &found{}
		f.Signature = fmt.Sprint(i)
		l.record(f)
		l.compared(&job{}, nil, OutcomeSame)
	}
	if len(l.book.findings) > mostFindings || len(l.book.fresh) > mostFresh {
		t.Errorf("%d findings and %d comparisons wait", len(l.book.findings), len(l.book.fresh))
	}
	l.countFresh(time.Now())
	begin := time.Now()
	for i := range 3 * mostTallies {
		l.tally(subject{operation: mapping.OpFlagTypes}, begin.Add(time.Duration(i)*time.Minute)).Compared++
	}
	sum := int64(0)
	for _, tally := range l.book.tallies {
		sum += tally.Compared
	}
	if len(l.book.tallies) > mostTallies+4 || sum != 3*(mostTallies+mostFindings) {
		t.Errorf("%d tallies of %d comparisons wait", len(l.book.tallies), sum)
	}
}
