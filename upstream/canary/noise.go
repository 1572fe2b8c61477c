package canary

import (
	"sync"
	"time"

	"portico/mapping"
)

const (
	// noiseLife is how long a path counts as noisy after it was last seen to vary.
	noiseLife = 10 * time.Minute
	// noiseProof is how often a path must have varied before it is excused without
	// asking: a single time may have been a write that came between.
	noiseProof = 2
	// mostNoise bounds how many paths are remembered.
	mostNoise = 4096
)

// noise remembers where the tracker that answers contradicts itself, so that a
// difference there says nothing about the other one.
type noise struct {
	mu    sync.Mutex
	paths map[noisePath]*variation
	most  int
}

// noisePath is a place in the answers of an operation, and how it varies.
type noisePath struct {
	tracker   string
	operation mapping.Operation
	path      string
	family    family
}

// variation is what is known of a noisyPath.
type variation struct {
	seen int
	last time.Time
}

// family is a kind of difference that may be noise. A field that is missing or of
// another type never is.
type family string

func familyOf(class Class) family {
	switch class {
	case ClassValue, ClassTime:
		return "value"
	case ClassOrder, ClassSet, ClassMessage, ClassHeader, ClassDigest:
		return family(class)
	default:
		return ""
	}
}

func newNoise(most int) *noise { return &noise{paths: map[noisePath]*variation{}, most: most} }

// known tells whether a difference is where the tracker was seen to vary.
func (n *noise) known(tracker string, operation mapping.Operation, d Difference, now time.Time) bool {
	at := noisePath{tracker, operation, d.Path, familyOf(d.Class)}
	if at.family == "" {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.paths[at]
	return v != nil && v.seen >= noiseProof && now.Sub(v.last) < noiseLife
}

// learn takes what differs between two answers of one tracker, given one right
// after the other.
func (n *noise) learn(tracker string, operation mapping.Operation, varied []Difference, now time.Time) {
	fresh := map[noisePath]bool{} // a path counts once, however many objects have it
	for _, d := range varied {
		if f := familyOf(d.Class); f != "" && d.Rule == "" {
			fresh[noisePath{tracker, operation, d.Path, f}] = true
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for at := range fresh {
		v := n.paths[at]
		if v == nil || now.Sub(v.last) >= noiseLife {
			n.makeRoom(now)
			v = &variation{}
			n.paths[at] = v
		}
		v.seen, v.last = v.seen+1, now
	}
}

// makeRoom forgets what is too old, and where that is not enough the oldest.
func (n *noise) makeRoom(now time.Time) {
	if len(n.paths) < n.most {
		return
	}
	var oldest noisePath
	first := now
	for at, v := range n.paths {
		if now.Sub(v.last) >= noiseLife {
			delete(n.paths, at)
		} else if !v.last.After(first) {
			oldest, first = at, v.last
		}
	}
	if len(n.paths) >= n.most {
		delete(n.paths, oldest)
	}
}

// forget begins anew.
func (n *noise) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.paths)
}
