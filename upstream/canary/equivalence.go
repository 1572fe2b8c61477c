package canary

import (
	"regexp"
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
	list []*rule
	// next is when the first of those that have not ended ends; zero means never.
	next time.Time
}

// rule is an equivalence that was compiled.
type rule struct {
	Equivalence
	path    *regexp.Regexp
	pattern *regexp.Regexp
	expired bool
}

// NewRules compiles equivalences as of now. The rules are those without a
// problem that is more than a warning; expired ones are kept for the report and
// excuse nothing.
func NewRules(list []Equivalence, now time.Time) (Rules, []RuleProblem) {
	var compiled []*rule
	var problems []RuleProblem
	names := map[string]bool{}
	for i, equivalence := range list {
		check := ruleCheck{at: i, rule: &rule{Equivalence: equivalence}, now: now}
		check.run(names)
		problems = append(problems, check.problems...)
		if !check.wrong {
			compiled = append(compiled, check.rule)
		}
	}
	return rulesAt(compiled, now), problems
}

// At gives the rules as of another time: those that have ended by then excuse
// nothing. It costs nothing while no rule ends.
func (r Rules) At(now time.Time) Rules {
	if r.next.IsZero() || now.Before(r.next) {
		return r
	}
	return rulesAt(r.list, now)
}

func rulesAt(list []*rule, now time.Time) Rules {
	var rules Rules
	for _, old := range list {
		fresh := *old
		fresh.expired = !fresh.Expires.After(now)
		if !fresh.expired && (rules.next.IsZero() || fresh.Expires.Before(rules.next)) {
			rules.next = fresh.Expires
		}
		rules.list = append(rules.list, &fresh)
	}
	return rules
}

// List gives the equivalences in their order, expired ones too.
func (r Rules) List() []Equivalence {
	list := make([]Equivalence, len(r.list))
	for i, rule := range r.list {
		list[i] = rule.Equivalence
	}
	return list
}
