package switchover

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
)

// Rule says of some calls which tracker answers them. All conditions that are
// set have to be met; a condition that is a list is met by any of its members.
// Names of products and components are compared without regard to case, as
// trackers do (wire-facts.md section 1, Encoded characters).
type Rule struct {
	// Name is unique in its table and seen in metrics and errors. It is part of
	// what decides who is in a percentage.
	Name       string   `json:"name"`
	Products   []string `json:"products,omitempty"`
	Components []string `json:"components,omitempty"`
	// Bugs are met by these bugs and by attachments that hang on them.
	Bugs []Range `json:"bugs,omitempty"`
	// Attachments are met by these attachments, not by the bugs they hang on.
	Attachments []Range             `json:"attachments,omitempty"`
	Operations  []mapping.Operation `json:"operations,omitempty"`
	// Callers are names that the configuration gives to credentials.
	Callers []string `json:"callers,omitempty"`
	// UserAgents are whole names, or beginnings with a * at the end.
	UserAgents []string `json:"user_agents,omitempty"`
	// Percent is the share of callers from 0 to 100, nil for all. A caller stays
	// on its side, and raising the number takes nobody back.
	Percent *float64 `json:"percent,omitempty"`
	Reads   Phase    `json:"reads"`
	Writes  Phase    `json:"writes"`
}

// Conditional tells whether there are calls that the rule does not match.
func (r Rule) Conditional() bool {
	return len(r.Products)+len(r.Components)+len(r.Bugs)+len(r.Attachments)+
		len(r.Operations)+len(r.Callers)+len(r.UserAgents) > 0 || r.Percent != nil
}

// Range is the ids From to To, both among them. A To of 0 is no end.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to,omitzero"`
}

// ParseRange reads "1-100", "100-" and "7".
func ParseRange(text string) (Range, error) {
	first, last, isRange := strings.Cut(strings.TrimSpace(text), "-")
	from, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil {
		return Range{}, fmt.Errorf("%q is not a range of ids such as 1-100, 100- or 7", text)
	}
	if !isRange {
		return Range{From: from, To: from}, nil
	}
	if last = strings.TrimSpace(last); last == "" {
		return Range{From: from}, nil
	}
	to, err := strconv.ParseInt(last, 10, 64)
	if err != nil || to == 0 {
		return Range{}, fmt.Errorf("%q is not a range of ids such as 1-100, 100- or 7", text)
	}
	return Range{From: from, To: to}, nil
}

// String gives the form that ParseRange reads.
func (r Range) String() string {
	switch r.To {
	case r.From:
		return strconv.FormatInt(r.From, 10)
	case 0:
		return fmt.Sprintf("%d-", r.From)
	default:
		return fmt.Sprintf("%d-%d", r.From, r.To)
	}
}

// Has tells whether an id lies in the range.
func (r Range) Has(id int64) bool { return id >= r.From && (r.To == 0 || id <= r.To) }

// Table is the whole list of rules. The first rule that matches counts.
type Table struct {
	// Rules end with one that has no conditions.
	Rules []Rule `json:"rules"`
	// Passthrough is for paths that are none of the seven operations; nil is
	// what the last rule says.
	Passthrough *PhasePair `json:"passthrough,omitempty"`
	// Killed, when set, makes every phase old.
	Killed *Kill `json:"killed,omitempty"`
}

// Kill is the kill switch, thrown.
type Kill struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Old names the tracker that everything goes to.
	Old string `json:"old,omitempty"`
}

// PhasePair is a phase for reads and one for writes.
type PhasePair struct {
	Reads  Phase `json:"reads"`
	Writes Phase `json:"writes"`
}
