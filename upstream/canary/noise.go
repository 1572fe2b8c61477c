package canary

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/maypok86/otter/v2"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

const (
	// noiseLife is how long a place counts as noisy after it was last seen to vary.
	noiseLife = 10 * time.Minute
	// noiseProof is how often a place must have varied before it is excused without
	// asking: a single time may have been a write that came between.
	noiseProof = 2
	// maxNoise and maxBelieved bound how many places and signatures are remembered.
	maxNoise, maxBelieved = 1 << 14, 4096
)

// noise remembers where the reference contradicts itself, so that a
// difference there says nothing about the candidate. A place is one of one object:
// that the same field of another object varies excuses nothing.
type noise struct {
	seed   maphash.Seed
	places *otter.Cache[place, int] // how often each was seen to vary
	// notNoise are the classes and paths that were found not to be noise.
	notNoise *otter.Cache[string, struct{}]
}

// place is a place in the reply to one call, and how it varies.
type place struct {
	call uint64
	variation
}

// variation is a place in a reply, and one way in which it varies (compare.Class.NoiseFamily).
type variation struct{ pointer, family string }

// variations gives the ways in which a tracker varies that gives two replies with
// these differences. Those that a rule excuses are no variation.
func variations(varied []compare.Difference) map[variation]bool {
	all := map[variation]bool{}
	for _, d := range varied {
		for _, value := range []jsontext.Value{d.Want, d.Have} {
			if family := d.Class.NoiseFamily(value); family != "" && d.Rule == "" {
				all[variation{d.Pointer, family}] = true
			}
		}
	}
	return all
}

// variesAs is how the reference would vary, if it gave the candidate's reply too.
func variesAs(d compare.Difference) variation {
	return variation{d.Pointer, d.Class.NoiseFamily(d.Have)}
}

func newNoise() *noise {
	return &noise{
		seed:     maphash.MakeSeed(),
		places:   otter.Must(&otter.Options[place, int]{MaximumSize: maxNoise, ExpiryCalculator: otter.ExpiryWriting[place, int](noiseLife)}),
		notNoise: otter.Must(&otter.Options[string, struct{}]{MaximumSize: maxBelieved, ExpiryCalculator: otter.ExpiryWriting[string, struct{}](noiseLife)}),
	}
}

// idOf stands for what the reference is asked. A place such as the status of a
// reply is another one for each of them.
func (n *noise) idOf(call upstream.Call) uint64 {
	method, target := call.Line()
	return maphash.Comparable(n.seed, [2]string{method, target})
}

// known reports whether a difference is where the reference was seen to vary.
func (n *noise) known(call upstream.Call, d compare.Difference) bool {
	times, _ := n.places.GetIfPresent(place{n.idOf(call), variesAs(d)})
	return times >= noiseProof
}

// learn takes what differs between two replies of one tracker, given one right
// after the other.
func (n *noise) learn(call upstream.Call, varied map[variation]bool) {
	for way := range varied {
		n.places.Compute(place{n.idOf(call), way}, func(times int, _ bool) (int, otter.ComputeOp) { return times + 1, otter.WriteOp })
	}
}

// enough reports whether the reference was asked often enough about differences that it has not shown itself: none may be noise at
// a path that is new. After the last time they are remembered as no noise.
func (n *noise) enough(operation mapping.Operation, differences []compare.Difference, asked int) bool {
	isNew := slices.ContainsFunc(differences, func(d compare.Difference) bool {
		_, known := n.notNoise.GetIfPresent(classKey(operation, d))
		return !known && variesAs(d).family != ""
	})
	if isNew && asked == maxAsked {
		for _, d := range differences {
			n.notNoise.Set(classKey(operation, d), struct{}{})
		}
	}
	return !isNew
}

// classKey is what all differences of a class and path share: where a tracker shows
// one thing, not every object needs more samples.
func classKey(operation mapping.Operation, d compare.Difference) string {
	return string(operation) + " " + string(d.Class) + " " + d.Path
}

// close ends what the caches do by themselves.
func (n *noise) close() {
	n.places.StopAllGoroutines()
	n.notNoise.StopAllGoroutines()
}

// forget discards all known noise.
func (n *noise) forget() {
	n.places.InvalidateAll()
	n.notNoise.InvalidateAll()
}
