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
	places *otter.Cache[place, sighting]
	// notNoise is when a class and path was last found not to be noise.
	notNoise *otter.Cache[string, time.Time]
}

// place is a place in the reply to one call, and how it varies.
type place struct {
	call uint64
	variation
}

// variation is a place in a reply, and one way in which it varies (compare.Class.NoiseFamily).
type variation struct{ pointer, family string }

type sighting struct {
	times int
	last  time.Time
}

// variations gives the ways in which a tracker varies that gives two replies with
// these differences. Those that a rule excuses are no variation.
func variations(varied []compare.Difference) map[variation]bool {
	all := make(map[variation]bool, len(varied))
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
		places:   otter.Must(&otter.Options[place, sighting]{MaximumSize: maxNoise}),
		notNoise: otter.Must(&otter.Options[string, time.Time]{MaximumSize: maxBelieved}),
	}
}

// callOf stands for what the reference is asked. A place such as the status of a
// reply is another one for each of them.
func (n *noise) callOf(call upstream.Call) uint64 {
	method, target := call.Line()
	return maphash.Comparable(n.seed, [2]string{method, target})
}

// known reports whether a difference is where the reference was seen to vary.
func (n *noise) known(call uint64, d compare.Difference, now time.Time) bool {
	seen, _ := n.places.GetIfPresent(place{call, variesAs(d)})
	return seen.times >= noiseProof && now.Sub(seen.last) < noiseLife
}

// learn takes what differs between two replies of one tracker, given one right
// after the other.
func (n *noise) learn(call uint64, varied map[variation]bool, now time.Time) {
	for way := range varied {
		n.places.Compute(place{call, way}, func(seen sighting, _ bool) (sighting, otter.ComputeOp) {
			if now.Sub(seen.last) >= noiseLife {
				seen.times = 0
			}
			return sighting{seen.times + 1, now}, otter.WriteOp
		})
	}
}

// enough reports whether the reference was asked often enough about differences that it has not shown itself: none may be noise at
// a path that is new. After the last time they are remembered as no noise.
func (n *noise) enough(operation mapping.Operation, differences []compare.Difference, asked int, now time.Time) bool {
	isNew := slices.ContainsFunc(differences, func(d compare.Difference) bool {
		at, _ := n.notNoise.GetIfPresent(classKey(operation, d))
		return variesAs(d).family != "" && now.Sub(at) >= noiseLife
	})
	if isNew && asked == maxAsked {
		for _, d := range differences {
			n.notNoise.Set(classKey(operation, d), now)
		}
	}
	return !isNew
}

// classKey is what all differences of a class and path share: where a tracker shows
// one thing, not every object needs more samples.
func classKey(operation mapping.Operation, d compare.Difference) string {
	return string(operation) + " " + string(d.Class) + " " + d.Path
}

// forget discards all known noise.
func (n *noise) forget() {
	n.places.InvalidateAll()
	n.notNoise.InvalidateAll()
}
