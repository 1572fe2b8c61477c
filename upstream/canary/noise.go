package canary

import (
	"container/list"
	"hash/maphash"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

const (
	// noiseLife is how long a place counts as noisy after it was last seen to vary.
	noiseLife = 10 * time.Minute
	// noiseProof is how often a place must have varied before it is excused without
	// asking: a single time may have been a write that came between.
	noiseProof = 2
	// mostNoise bounds how many places are remembered.
	mostNoise = 1 << 14
	// mostBelieved bounds the signatures that are remembered.
	mostBelieved = 4096
)

// noise remembers where the tracker that answers contradicts itself, so that a
// difference there says nothing about the other one. A place is one of one object:
// that the same field of another object varies excuses nothing.
type noise struct {
	mu   sync.Mutex
	seed maphash.Seed
	most int
	// places has elements of latest, which are *variation, the last seen first.
	places map[noisePlace]*list.Element
	latest *list.List
	// believed is when a signature was last found not to be noise.
	believed map[string]time.Time
}

// noisePlace is a place in the answer to one call, and how it varies.
type noisePlace struct {
	call uint64
	varies
}

// varies is a place in an answer, and one way in which it varies.
type varies struct {
	pointer string
	family  family
}

// variation is what is known of a noisePlace.
type variation struct {
	place noisePlace
	seen  int
	last  time.Time
}

// family is a kind of difference that may be noise. It does not stand for others:
// a text that varies says nothing of one that is missing.
type family string

// familyOf gives the family of a difference as far as one of its sides shows it.
// Where there are few things to be said, it names what is said: a tracker that now
// and then answers 503 does not excuse another one that answers 404.
func familyOf(class Class, said jsontext.Value) family {
	switch class {
	case ClassValue, ClassTime:
		return "value"
	case ClassMissing, ClassExtra:
		return "presence"
	case ClassOrder, ClassSet, ClassMessage, ClassHeader, ClassDigest, ClassNull:
		return family(class)
	case ClassStatus, ClassCode:
		return family(string(class) + " " + string(said))
	case ClassType:
		return family(string(class) + " " + typeOf(said))
	default:
		return ""
	}
}

// typeOf names the type of a value, integers apart from other numbers.
func typeOf(value jsontext.Value) string {
	switch kind := value.Kind(); {
	case kind == 't':
		return "f"
	case kind == '0' && !isInteger(value):
		return "0.0"
	default:
		return string(kind)
	}
}

// variations gives the ways in which a tracker varies that gives two answers with
// these differences. Those that a rule excuses are no variation.
func variations(varied []Difference) map[varies]bool {
	all := make(map[varies]bool, len(varied))
	for _, d := range varied {
		for _, said := range []jsontext.Value{d.Want, d.Have} {
			if f := familyOf(d.Class, said); f != "" && d.Rule == "" {
				all[varies{d.Pointer, f}] = true
			}
		}
	}
	return all
}

// variesAs is how the reference would vary, if it gave the candidate's answer too.
func (d Difference) variesAs() varies { return varies{d.Pointer, familyOf(d.Class, d.Have)} }

// Steady gives those of a candidate's differences that are no noise. contradictions are what differs between answers of
// the reference to the same call; a place is excused there only, and only as it varies.
func Steady(differences, contradictions []Difference) []Difference {
	return sift(differences, variations(contradictions), nil).confirmed
}

func newNoise(most int) *noise {
	return &noise{
		seed: maphash.MakeSeed(), most: most, places: map[noisePlace]*list.Element{}, latest: list.New(),
		believed: map[string]time.Time{},
	}
}

// callOf stands for what a tracker is asked. A place such as the status of an
// answer is another one for each of them.
func (n *noise) callOf(tracker string, call upstream.Call) uint64 {
	method, target := call.Line()
	return maphash.Comparable(n.seed, [3]string{tracker, method, target})
}

// known tells whether a difference is where the tracker was seen to vary.
func (n *noise) known(call uint64, d Difference, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.places[noisePlace{call, d.variesAs()}]
	if at == nil {
		return false
	}
	v := at.Value.(*variation)
	return v.seen >= noiseProof && now.Sub(v.last) < noiseLife
}

// learn takes what differs between two answers of one tracker, given one right
// after the other.
func (n *noise) learn(call uint64, varied map[varies]bool, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for way := range varied {
		place := noisePlace{call, way}
		at := n.places[place]
		if at == nil {
			at = n.latest.PushFront(&variation{place: place})
			n.places[place] = at
		}
		v := at.Value.(*variation)
		if now.Sub(v.last) >= noiseLife {
			v.seen = 0
		}
		v.seen, v.last = v.seen+1, now
		n.latest.MoveToFront(at)
	}
	for len(n.places) > n.most {
		last := n.latest.Back()
		delete(n.places, n.latest.Remove(last).(*variation).place)
	}
}

// doubted tells whether any of these differences may be noise and has a signature
// that is new.
func (n *noise) doubted(operation mapping.Operation, differences []Difference, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range differences {
		at, ok := n.believed[d.Signature(operation)]
		if d.variesAs().family != "" && (!ok || now.Sub(at) >= noiseLife) {
			return true
		}
	}
	return false
}

// believe remembers differences that were doubted and are none of the tracker's own.
func (n *noise) believe(operation mapping.Operation, differences []Difference, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range differences {
		if len(n.believed) >= mostBelieved {
			clear(n.believed)
		}
		n.believed[d.Signature(operation)] = now
	}
}

// forget begins anew.
func (n *noise) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.places)
	n.latest.Init()
	clear(n.believed)
}
