package switchover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
)

// Phase says which of the two trackers responds, and whether the other one is
// compared with it.
type Phase string

// The phases, in the order of a move.
const (
	PhaseOld        Phase = "old"
	PhaseOldCompare Phase = "old-compare"
	PhaseNewCompare Phase = "new-compare"
	PhaseNew        Phase = "new"
)

// Phases lists all four in the order of a move.
func Phases() []Phase { return []Phase{PhaseOld, PhaseOldCompare, PhaseNewCompare, PhaseNew} }

// New reports whether the new tracker responds.
func (p Phase) New() bool { return p == PhaseNewCompare || p == PhaseNew }

// Compares reports whether the other tracker is compared with the one that responds.
func (p Phase) Compares() bool { return p == PhaseOldCompare || p == PhaseNewCompare }

// index is the place of a phase in the order of a move.
func (p Phase) index() int { return slices.Index(Phases(), p) }

// side is one of the two trackers.
type side uint8

const (
	oldSide side = iota
	newSide
)

func (p Phase) side() side {
	if p.New() {
		return newSide
	}
	return oldSide
}

func (s side) other() side { return 1 - s }

// PhasePair is a phase for reads and one for writes. The tags other than json are those of the configuration (package config),
// here and in Rule.
type PhasePair struct {
	Reads  Phase `json:"reads" key:"reads" unset:"" oneof:"old|old-compare|new-compare|new"`
	Writes Phase `json:"writes" key:"writes" unset:"" oneof:"old|old-compare|new-compare|new"`
}

// of is the phase for writes or for reads.
func (p PhasePair) of(write bool) Phase {
	if write {
		return p.Writes
	}
	return p.Reads
}

// Rule says which tracker responds to some of the calls. All conditions that are
// set have to be met; a condition that is a list is met by any of its members.
// Names of products and components are compared without regard to case, as
// trackers do (tracker-behaviour.md section 1, Encoded characters).
type Rule struct {
	// Name is unique in its table and appears in metrics and errors. It is part of
	// what decides which callers are in a percentage.
	Name       string   `json:"name" key:"name"`
	Products   []string `json:"products,omitempty" key:"product" comma:"no"`
	Components []string `json:"components,omitempty" key:"component" comma:"no"`
	// Bugs are met by these bugs and by attachments of them.
	Bugs []Range `json:"bugs,omitempty" key:"bugs"`
	// Attachments are met by these attachments, not by their bugs.
	Attachments []Range             `json:"attachments,omitempty" key:"attachments"`
	Operations  []mapping.Operation `json:"operations,omitempty" key:"operation"`
	// Callers are names that the configuration gives to credentials.
	Callers []string `json:"callers,omitempty" key:"caller" comma:"no"`
	// UserAgents are whole names, or prefixes with a * at the end.
	UserAgents []string `json:"user_agents,omitempty" key:"user_agent" comma:"no"`
	// Percent is the share of callers from 0 to 100, nil for all. A caller stays
	// on its side, and raising the number takes no caller back.
	Percent *float64 `json:"percent,omitempty" key:"percent" unset:"" min:"0" max:"100"`
	Reads   Phase    `json:"reads" key:"reads" default:"old-compare" oneof:"old|old-compare|new-compare|new"`
	Writes  Phase    `json:"writes" key:"writes" default:"old-compare" oneof:"old|old-compare|new-compare|new"`
	// Replicate says that the writes are recorded and copied to the other tracker.
	Replicate bool `json:"replicate,omitempty" key:"replicate"`
}

// Phases are those of the rule.
func (r *Rule) Phases() PhasePair { return PhasePair{r.Reads, r.Writes} }

// phase is the one that the rule has for an operation.
func (r *Rule) phase(operation mapping.Operation) Phase {
	return r.Phases().of(operation.IsWrite())
}

// Conditional reports whether there are calls that the rule does not match.
func (r Rule) Conditional() bool { return len(r.Conditions()) > 0 }

// Conditions says in words which calls the rule matches, one text for each condition. None means that it matches every call.
func (r Rule) Conditions() []string {
	var all []string
	add := func(name, values string) {
		if values != "" {
			all = append(all, name+" "+values)
		}
	}
	add("product", quoted(r.Products))
	add("component", quoted(r.Components))
	add("bugs", joined(r.Bugs, ", "))
	add("attachments", joined(r.Attachments, ", "))
	add("operation", joined(r.Operations, ", "))
	add("caller", joined(r.Callers, ", "))
	add("user agent", quoted(r.UserAgents))
	if r.Percent != nil {
		add(fmt.Sprintf("%g", *r.Percent), "% of the callers")
	}
	return all
}

// joined lists values.
func joined[T any](values []T, separator string) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprint(value)
	}
	return strings.Join(texts, separator)
}

// quoted is joined for names, in quotes where a name could not be told from a list of names.
func quoted(names []string) string {
	names = slices.Clone(names)
	for i, name := range names {
		if strings.ContainsAny(name, ",;\"") || strings.TrimSpace(name) != name {
			names[i] = strconv.Quote(name)
		}
	}
	return joined(names, ", ")
}

// Range is the ids From to To, both included. A To of 0 is no end.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to,omitzero"`
}

// String gives the form of the configuration: 1-100, 500- or 7.
func (r Range) String() string {
	switch r.To {
	case r.From:
		return fmt.Sprint(r.From)
	case 0:
		return fmt.Sprintf("%d-", r.From)
	default:
		return fmt.Sprintf("%d-%d", r.From, r.To)
	}
}

// ParseRange reads what String writes, where ids begin with 1.
func ParseRange(text string) (r Range, err error) {
	if _, _ = fmt.Sscanf(text, "%d-%d", &r.From, &r.To); !strings.Contains(text, "-") {
		r.To = r.From
	}
	if r.String() != text || r.From < 1 || r.To != 0 && r.To < r.From {
		err = strconv.ErrSyntax
	}
	return r, err
}

// Table is the whole list of rules. The first rule that matches decides.
type Table struct {
	// Rules end with one that has no conditions.
	Rules []Rule `json:"rules"`
	// Passthrough is for paths outside the seven operations; nil is
	// what the last rule says.
	Passthrough *PhasePair `json:"passthrough,omitempty"`
	// PassedCopied declares that what passes through is copied to the other tracker by other means.
	PassedCopied bool `json:"passthrough_copied,omitempty"`
	// Killed, when set, makes every phase old.
	Killed *Kill `json:"killed,omitempty"`
	// Revived is when a kill was last ended. A kill from before it that reaches the
	// store late is over.
	Revived time.Time `json:"revived,omitzero"`
	// Moving names the rules whose writes wait, because the next revision sends them to the other tracker.
	Moving []string `json:"moving,omitempty"`
}

// others are the phases of paths outside the interface.
func (t Table) others() PhasePair {
	if t.Passthrough != nil {
		return *t.Passthrough
	}
	return t.Rules[len(t.Rules)-1].Phases()
}

// RuleFile is the rules as operators write them in a file.
type RuleFile struct {
	// Passthrough are the phases of paths outside the interface; empty ones are those of the last rule.
	Passthrough Passthrough `key:"passthrough"`
	// Rules are tried in order, and the first that matches counts. A percentage of 100 is a condition too, so that a share that
	// has grown hides no rule behind it.
	Rules []Rule `key:"rules"`
}

// Passthrough is about paths outside the interface.
type Passthrough struct {
	PhasePair `keys:""`
	// Copied declares that what is written there is copied to the other tracker by other means.
	Copied bool `key:"copied"`
}

// Table returns the rules as a Table. Without any, everything is compared and nothing moves. A percentage of 100 is no condition of the
// last rule, which has to be for all.
func (s *RuleFile) Table() Table {
	table := Table{Rules: slices.Clone(s.Rules)}
	if len(table.Rules) == 0 {
		table.Rules = []Rule{{Name: "default", Reads: PhaseOldCompare, Writes: PhaseOldCompare}}
	}
	if last := &table.Rules[len(table.Rules)-1]; last.Percent != nil && *last.Percent == 100 {
		last.Percent = nil
	}
	table.PassedCopied = s.Passthrough.Copied
	if pair := s.Passthrough.PhasePair; pair.Reads != "" && pair.Writes != "" {
		table.Passthrough = &pair
	}
	return table
}

// Kill is a kill switch in force.
type Kill struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Old names the tracker that everything goes to.
	Old string `json:"old,omitempty"`
	// Missing says which writes that tracker does not have.
	Missing []string `json:"missing,omitempty"`
}
