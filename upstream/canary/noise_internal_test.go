package canary

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

func at(class compare.Class, path string) compare.Difference {
	return compare.Difference{Class: class, Path: path, Pointer: path}
}

// between are the ways in which a tracker varies that gives these differences.
func between(differences ...compare.Difference) map[variation]bool { return variations(differences) }

func TestNoiseIsBelievedAfterASecondTime(t *testing.T) {
	n, now := newNoise(), time.Now()
	varied := between(at(compare.ClassValue, "$.a"), at(compare.ClassMissing, "$.b"), compare.Difference{Class: compare.ClassValue, Pointer: "$.c", Rule: "r"})
	known := func(class compare.Class, pointer string, when time.Time) bool {
		return n.known(1, at(class, pointer), when)
	}
	n.learn(1, varied, now)
	if known(compare.ClassValue, "$.a", now) {
		t.Error("one time was enough")
	}
	n.learn(1, varied, now)
	for _, c := range []struct {
		class   compare.Class
		pointer string
		after   time.Duration
		want    bool
	}{
		{compare.ClassValue, "$.a", 0, true},
		{compare.ClassTime, "$.a", 0, true}, // of the same family
		{compare.ClassOrder, "$.a", 0, false},
		{compare.ClassType, "$.a", 0, false},
		{compare.ClassMissing, "$.a", 0, false},
		{compare.ClassMissing, "$.b", 0, true},
		{compare.ClassExtra, "$.b", 0, true},
		{compare.ClassValue, "$.b", 0, false},
		{compare.ClassValue, "$.c", 0, false}, // a rule explained it
		{compare.ClassValue, "$.a", noiseLife, false},
	} {
		if got := known(c.class, c.pointer, now.Add(c.after)); got != c.want {
			t.Errorf("%s at %s after %v: %v", c.class, c.pointer, c.after, got)
		}
	}
	if n.known(2, at(compare.ClassValue, "$.a"), now) {
		t.Error("noise in the answers to one call counts for another")
	}
	n.learn(1, varied, now.Add(2*noiseLife))
	if known(compare.ClassValue, "$.a", now.Add(2*noiseLife)) {
		t.Error("what was forgotten counts")
	}
}

func TestCallsAreToldApart(t *testing.T) {
	n := newNoise()
	call := func(product string) upstream.Call {
		return upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product}}
	}
	if once, again := n.callOf(call("P")), n.callOf(call("P")); once != again || once == n.callOf(call("Q")) {
		t.Error("one call is two, or two calls are one")
	}
}

// TestNoiseNamesWhatIsSaid: where few things can be said, only what the reference
// says itself is excused.
func TestNoiseNamesWhatIsSaid(t *testing.T) {
	raw := func(text string) jsontext.Value { return jsontext.Value(text) }
	for name, c := range map[string]struct {
		class      compare.Class
		want, have string // of the reference and of the reference
		said       string // by the candidate
		noise      bool
	}{
		"the same status":   {compare.ClassStatus, "200", "503", "503", true},
		"another status":    {compare.ClassStatus, "200", "503", "404", false},
		"the same code":     {compare.ClassCode, "0", "106", "106", true},
		"another code":      {compare.ClassCode, "0", "106", "51", false},
		"the same type":     {compare.ClassType, "1", `"1"`, `"7"`, true},
		"another type":      {compare.ClassType, "1", `"1"`, "true", false},
		"another truth":     {compare.ClassType, "1", "true", "false", true},
		"another number":    {compare.ClassType, "1", `"1"`, "1.5", false},
		"null":              {compare.ClassNull, "1", "null", "null", true},
		"no null":           {compare.ClassNull, "1", "null", "2", true},
		"an answer or none": {compare.ClassFailure, "", `"timeout"`, `"timeout"`, false},
	} {
		varied := between(compare.Difference{Class: c.class, Pointer: "$.a", Want: raw(c.want), Have: raw(c.have)})
		d := compare.Difference{Class: c.class, Pointer: "$.a", Have: raw(c.said)}
		if got := without([]compare.Difference{d}, varied); (len(got) == 0) != c.noise {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestNoiseIsBounded(t *testing.T) {
	n, now := newNoise(), time.Now()
	for i := range 2 * maxNoise {
		n.learn(1, between(at(compare.ClassValue, fmt.Sprintf("$.a%d", i))), now)
		n.markNotNoise("", []compare.Difference{at(compare.ClassValue, fmt.Sprint(i))}, now)
	}
	n.places.CleanUp()
	n.notNoise.CleanUp()
	if places, believed := n.places.EstimatedSize(), n.notNoise.EstimatedSize(); places > maxNoise || believed > maxBelieved {
		t.Errorf("%d places and %d signatures are remembered", places, believed)
	}
}

func TestSteadyLeavesWhatTheReferenceDoesNotShow(t *testing.T) {
	lasting := []compare.Difference{at(compare.ClassValue, "$.a"), at(compare.ClassMissing, "$.c"), at(compare.ClassOrder, "$.e"), at(compare.ClassMissing, "$.f")}
	varied := between(at(compare.ClassTime, "$.a"), at(compare.ClassExtra, "$.f"), at(compare.ClassValue, "$.e"))
	got := without(lasting, varied)
	if len(got) != 2 || got[0].Path != "$.c" || got[1].Path != "$.e" {
		t.Errorf("got %+v", got)
	}
}
