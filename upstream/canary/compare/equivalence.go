package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
)

// EquivalenceType says what an Equivalence excuses.
type EquivalenceType string

// The types of equivalences. Each excuses exactly one kind of difference.
const (
	// TimeWithin excuses two times in one notation that are at most Within apart.
	TimeWithin EquivalenceType = "time-within"
	// Regex excuses two texts that both match Pattern from beginning to end; what its groups capture must be equal.
	Regex EquivalenceType = "regex"
	// IntAsBool excuses 0 for false and 1 for true, both ways.
	IntAsBool EquivalenceType = "int-as-bool"
	// IDMap excuses the id that the candidate has for the same thing: Table has it, or else it is the id plus Offset.
	IDMap EquivalenceType = "idmap"
	// Set excuses another order of an array.
	Set EquivalenceType = "set"
	// URLHost excuses another scheme and host of URLs that are equal otherwise.
	URLHost EquivalenceType = "url-host"
	// Extra excuses a member or an element that only the candidate has.
	Extra EquivalenceType = "extra"
	// Pair excuses one pair of values of status or code: Want of the reference and Have of the candidate.
	Pair EquivalenceType = "pair"
)

// Equivalence is a rule that accepts a difference. The tags other than json are those of the configuration (package config).
type Equivalence struct {
	Name string          `json:"name" key:"name"`
	Type EquivalenceType `json:"type" key:"type" unset:"" oneof:"time-within|regex|int-as-bool|idmap|set|url-host|extra|pair"`
	// Operation restricts it to one; empty means all.
	Operation mapping.Operation `json:"operation,omitempty" key:"operation"`
	// Path is a pattern for Difference.Path: * stands for any text within one segment, ** for any number of segments.
	Path string `json:"path" key:"path"`

	Within  time.Duration   `json:"within,omitempty" key:"within" default:"0s" min:"0s"` // of TimeWithin
	Pattern string          `json:"pattern,omitempty" key:"pattern"`                     // of Regex, in the notation of Go's regexp
	Offset  int64           `json:"offset,omitempty" key:"offset" default:"0"`           // of IDMap
	Table   map[int64]int64 `json:"table,omitempty" key:"table"`                         // of IDMap
	Want    int             `json:"want,omitempty" key:"want" default:"0" min:"0"`       // of Pair
	Have    int             `json:"have,omitempty" key:"have" default:"0" min:"0"`       // of Pair

	// Owner and Reason say who answers for it and why.
	Owner  string `json:"owner" key:"owner"`
	Reason string `json:"reason" key:"reason"`
	// Expires is when it ends.
	Expires time.Time `json:"expires" key:"expires" unset:""`
}

// RuleProblem is a mistake in a list of equivalences.
type RuleProblem struct {
	// Rule is the position in the list.
	Rule int
	// Field is the field's name as in a configuration.
	Field   string
	Message string
	// Warning says that the list can be used all the same.
	Warning bool
}

// Rules are equivalences that can be applied as of a time. The zero value has none.
type Rules struct {
	list []*rule
	now  time.Time
}

// rule is an equivalence that was compiled.
type rule struct {
	Equivalence
	path, pattern *regexp.Regexp
}

// NewRules compiles equivalences as of now. The rules are those without a problem that is more than a warning; expired ones are
// kept for the report and excuse nothing.
func NewRules(list []Equivalence, now time.Time) (Rules, []RuleProblem) {
	rules := Rules{now: now}
	var problems []RuleProblem
	names := map[string]bool{}
	for i, equivalence := range list {
		r := &rule{Equivalence: equivalence}
		found := r.compile(i, names, now)
		problems = append(problems, found...)
		if !slices.ContainsFunc(found, func(p RuleProblem) bool { return !p.Warning }) {
			rules.list = append(rules.list, r)
		}
		names[r.Name] = true
	}
	return rules, problems
}

// At gives the rules as of another time: those that have expired by then excuse nothing.
func (r Rules) At(now time.Time) Rules { return Rules{list: r.list, now: now} }

// List gives the equivalences in their order, expired ones too.
func (r Rules) List() []Equivalence {
	list := make([]Equivalence, len(r.list))
	for i, rule := range r.list {
		list[i] = rule.Equivalence
	}
	return list
}

// IsExpired reports whether an equivalence excuses nothing any more.
func (r Rules) IsExpired(e Equivalence) bool { return !e.Expires.After(r.now) }

// compile compiles the patterns and says what is wrong with the rule at a position. names are those of the rules before.
func (r *rule) compile(position int, names map[string]bool, now time.Time) (found []RuleProblem) {
	report := func(isWrong bool, field, message string) {
		if isWrong {
			found = append(found, RuleProblem{Rule: position, Field: field, Message: message})
		}
	}
	for _, text := range []struct{ field, value, message string }{
		{"name", r.Name, "a rule needs a name"}, {"owner", r.Owner, "a rule needs an owner, who answers for it"}, {"reason", r.Reason, "a rule needs a reason"},
	} {
		report(strings.TrimSpace(text.value) == "", text.field, text.message)
	}
	report(r.Name != "" && names[r.Name], "name", fmt.Sprintf("there is another rule %q", r.Name))
	report(r.Operation != "" && !slices.Contains(mapping.Operations(), r.Operation), "operation", fmt.Sprintf("there is no operation %q", r.Operation))
	types := []EquivalenceType{TimeWithin, Regex, IntAsBool, IDMap, Set, URLHost, Extra, Pair}
	report(!slices.Contains(types, r.Type), "type", fmt.Sprintf("unknown type %q; use time-within, regex, int-as-bool, idmap, set, url-host, extra or pair", r.Type))
	for _, own := range []struct {
		of     EquivalenceType
		field  string
		isSet  bool
		needed string
	}{
		{TimeWithin, "within", r.Within > 0, "a duration"},
		{Regex, "pattern", r.Pattern != "", "a pattern"},
		{IDMap, "offset", r.Offset != 0 || r.Type == IDMap && len(r.Table) > 0, "an offset or a table"},
		{IDMap, "table", len(r.Table) > 0, ""},
		{Pair, "want", r.Want != r.Have, "two different numbers, want and have"},
	} {
		report(r.Type == own.of && !own.isSet && own.needed != "", own.field, "a rule of this type needs "+own.needed)
		report(r.Type != own.of && own.isSet, own.field, "only a rule of type "+string(own.of)+" has it")
	}
	report(r.Type == Pair && r.Path != PathStatus && r.Path != PathCode, "path", "a rule of this type has the path status or code")
	var err error
	r.path, err = compilePath(r.Path)
	report(err != nil, "path", fmt.Sprint(err))
	_, err = regexp.Compile(r.Pattern)
	r.pattern, _ = regexp.Compile(`\A(?:` + r.Pattern + `)\z`)
	report(err != nil, "pattern", fmt.Sprint(err))
	report(r.Expires.IsZero(), "expires", "a rule needs an end")
	if !r.Expires.IsZero() && !r.Expires.After(now) {
		report(true, "expires", "the rule ended on "+r.Expires.UTC().Format(time.DateOnly)+" and excuses nothing any more")
		found[len(found)-1].Warning = true
	}
	return found
}

// excuses reports whether a difference is of the one kind that the rule is for, and within its bounds.
func (r *rule) excuses(d Difference) bool {
	if !slices.Contains(classes[d.Class].rules, r.Type) {
		return false
	}
	want, have := string(unquoted(d.Want)), string(unquoted(d.Have))
	isText := d.Want.Kind() == '"' && d.Have.Kind() == '"'
	switch r.Type {
	case Pair:
		return want == strconv.Itoa(r.Want) && have == strconv.Itoa(r.Have)
	case IntAsBool:
		return slices.Contains([]string{"0 false", "1 true", "false 0", "true 1"}, string(d.Want)+" "+string(d.Have))
	case TimeWithin:
		apart, _ := timesApart(d.Want, d.Have)
		return apart <= r.Within
	case IDMap:
		return d.Want.Kind() == d.Have.Kind() && have != "" && r.mapped(want) == have
	case Regex:
		first, second := r.pattern.FindStringSubmatch(want), r.pattern.FindStringSubmatch(have)
		return isText && first != nil && second != nil && slices.Equal(first[1:], second[1:])
	case URLHost:
		return isText && sameBehindHost(want, have)
	}
	return true // Set and Extra
}

// mapped gives the id that the candidate has for an id, empty where there is none.
func (r *rule) mapped(id string) string {
	number, err := strconv.ParseInt(id, 10, 64)
	other, ok := r.Table[number]
	if !ok {
		other = number + r.Offset
		ok = (other > number) == (r.Offset > 0) && r.Offset != 0
	}
	if err != nil || !ok {
		return ""
	}
	return strconv.FormatInt(other, 10)
}

// absoluteURL has what follows the host as its group.
var absoluteURL = regexp.MustCompile(`^https?://[^/?#@ \t\r\n]+((?s:[/?#].*)?)$`)

// sameBehindHost reports whether both are absolute URLs that are equal but for scheme and host.
func sameBehindHost(want, have string) bool {
	first, second := absoluteURL.FindStringSubmatch(want), absoluteURL.FindStringSubmatch(have)
	return first != nil && second != nil && first[1] == second[1]
}

// How segments of a path are written: .name, [id], ["odd name"].
const (
	nameSegment    = `\.[^.\[\]"]+`
	bracketSegment = `\[(?:"[^"]*"|[^"\]]*)\]`
	anySegment     = `(?:` + nameSegment + `|` + bracketSegment + `)`
)

var (
	segmentForm = regexp.MustCompile(anySegment)
	pathStart   = regexp.MustCompile(`^(?:\$|header|[a-z*]+)`)
	pathForm    = regexp.MustCompile(pathStart.String() + anySegment + `*$`)
	wildcards   = strings.NewReplacer(
		`\.\*\*`, anySegment+`*`, `\[\*\*\]`, anySegment+`*`, `\.\*`, `(?:`+nameSegment+`|\["[^"]*"\])`, `\[\*\]`, bracketSegment, `\*\*`, `.*`, `\*`, `[^.\[\]"]*`)
)

// compilePath makes a regular expression of a pattern for paths.
func compilePath(pattern string) (*regexp.Regexp, error) {
	if !pathForm.MatchString(pattern) {
		return nil, fmt.Errorf("invalid path %q; a rule needs one such as $.attachments[*].last_change_time, ** stands for all", pattern)
	}
	return regexp.Compile(`\A` + wildcards.Replace(regexp.QuoteMeta(pattern)) + `\z`)
}
