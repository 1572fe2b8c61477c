package canary

import (
	"time"

	"portico/mapping"
)

// EquivalenceType says what an Equivalence excuses.
type EquivalenceType string

// The types of equivalences. Each excuses exactly one kind of difference.
const (
	// TimeWithin excuses two times in one notation that are at most Within apart.
	TimeWithin EquivalenceType = "time-within"
	// Regex excuses two texts that both match Pattern from beginning to end; what its
	// groups capture must be equal.
	Regex EquivalenceType = "regex"
	// IntAsBool excuses 0 for false and 1 for true, both ways.
	IntAsBool EquivalenceType = "int-as-bool"
	// IDMap excuses the id that the other tracker has for the same thing: Table has
	// it, or else it is the id plus Offset.
	IDMap EquivalenceType = "idmap"
	// Set excuses another order of an array.
	Set EquivalenceType = "set"
	// URLHost excuses another scheme and host of URLs that are equal otherwise.
	URLHost EquivalenceType = "url-host"
)

// Equivalence is a difference that somebody has found to be none.
type Equivalence struct {
	Name string          `json:"name"`
	Type EquivalenceType `json:"type"`
	// Operation restricts it to one; empty means all.
	Operation mapping.Operation `json:"operation,omitempty"`
	// Path is a pattern for Difference.Path: * stands for any text within one
	// segment, ** for any number of segments.
	Path string `json:"path"`

	Within  time.Duration   `json:"within,omitempty"`  // of TimeWithin
	Pattern string          `json:"pattern,omitempty"` // of Regex, in the notation of Go's regexp
	Offset  int64           `json:"offset,omitempty"`  // of IDMap
	Table   map[int64]int64 `json:"table,omitempty"`   // of IDMap

	// Owner and Reason say who answers for it and why.
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	// Expires is when it ends.
	Expires time.Time `json:"expires"`
}

// RuleProblem is a mistake in a list of equivalences.
type RuleProblem struct {
	// Rule is the position in the list, Name the rule's name where it has one.
	Rule int
	Name string
	// Field is the field's name as in a configuration.
	Field   string
	Message string
	// Warning says that the list can be used all the same.
	Warning bool
}

// Rules are equivalences that can be applied. The zero value has none.
type Rules struct {
	list []Equivalence
}

// NewRules compiles equivalences as of now. The rules are those without a
// problem that is more than a warning; expired ones are kept for the report and
// excuse nothing.
func NewRules(list []Equivalence, now time.Time) (Rules, []RuleProblem) {
	return Rules{list: list}, nil
}

// At gives the rules as of another time.
func (r Rules) At(now time.Time) Rules { return r }

// List gives the equivalences in their order.
func (r Rules) List() []Equivalence { return r.list }
