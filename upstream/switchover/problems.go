package switchover

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"portico/mapping"
)

// longestRuleName bounds the name of a rule, in bytes.
const longestRuleName = 200

// Problem is one thing that is wrong with a table.
type Problem struct {
	// Rule is the place of the rule, -1 for the table itself.
	Rule int `json:"rule"`
	// Field is the rule's member as in JSON, such as products or reads; empty
	// when it is the rule as a whole.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Warning says that the table works nevertheless.
	Warning bool `json:"warning,omitempty"`
}

// String gives the problem in one line.
func (p Problem) String() string {
	switch {
	case p.Rule < 0:
		return p.Message
	case p.Field == "":
		return fmt.Sprintf("rule %d: %s", p.Rule+1, p.Message)
	default:
		return fmt.Sprintf("rule %d, %s: %s", p.Rule+1, p.Field, p.Message)
	}
}

// Problems lists all that is wrong with a table, in the order of its rules.
// callers are the names that a rule may use.
func (t Table) Problems(callers []string) []Problem {
	if len(t.Rules) == 0 {
		return []Problem{{Rule: -1, Message: "there are no rules; the last one has to be there, without conditions"}}
	}
	c := &checker{rules: t.Rules, callers: callers}
	if t.Passthrough != nil {
		c.at = -1
		c.phases("passthrough.", t.Passthrough.Reads, t.Passthrough.Writes)
	}
	for i, rule := range t.Rules {
		c.at = i
		c.name(rule)
		c.phases("", rule.Reads, rule.Writes)
		c.conditions(rule)
		c.hidden(rule)
		c.twoWriters(rule)
	}
	if c.at = len(t.Rules) - 1; t.Rules[c.at].Conditional() {
		c.add("", "the last rule must have no conditions, or there are calls that no rule is for")
	}
	c.together()
	if t.Passthrough != nil && len(faults(slices.Clone(c.found))) == 0 {
		c.besidePassthrough(t.Passthrough)
	}
	slices.SortStableFunc(c.found, func(a, b Problem) int { return cmp.Compare(a.Rule, b.Rule) })
	return c.found
}

// faults are the problems that keep a table from working.
func faults(problems []Problem) []Problem {
	return slices.DeleteFunc(problems, func(p Problem) bool { return p.Warning })
}

// checker gathers what is wrong with the rules, one after the other.
type checker struct {
	rules   []Rule
	callers []string
	at      int
	found   []Problem
}

func (c *checker) add(field, format string, args ...any) {
	c.found = append(c.found, Problem{Rule: c.at, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(field, format string, args ...any) {
	c.add(field, format, args...)
	c.found[len(c.found)-1].Warning = true
}

func (c *checker) name(rule Rule) {
	if strings.TrimSpace(rule.Name) == "" {
		c.add("name", "a rule needs a name")
		return
	}
	if strings.ContainsFunc(rule.Name, unicode.IsControl) {
		c.add("name", "%q has a line end or another control character in it", rule.Name)
		return
	}
	if len(rule.Name) > longestRuleName {
		c.add("name", "a name has at most %d bytes, as it is a label of metrics", longestRuleName)
		return
	}
	for _, earlier := range c.rules[:c.at] {
		if earlier.Name == rule.Name {
			c.add("name", "there is another rule %q", rule.Name)
			return
		}
	}
}

func (c *checker) phases(prefix string, reads, writes Phase) {
	c.phase(prefix+"reads", reads)
	c.phase(prefix+"writes", writes)
	if writes.New() && !reads.New() {
		c.add(prefix+"reads", "reads (%s) are behind writes (%s): nobody would see what is written", reads, writes)
	}
}

func (c *checker) phase(field string, phase Phase) {
	if !phase.Valid() {
		c.add(field, "%q is no phase: old, old-compare, new-compare or new", phase)
	}
}

func (c *checker) conditions(rule Rule) {
	c.texts("products", rule.Products)
	c.texts("components", rule.Components)
	c.texts("callers", rule.Callers)
	c.texts("user_agents", rule.UserAgents)
	c.ranges("bugs", rule.Bugs)
	c.ranges("attachments", rule.Attachments)
	for _, operation := range rule.Operations {
		if !slices.Contains(mapping.Operations(), operation) {
			c.add("operations", "there is no operation %q, only %s", operation, named(mapping.Operations()))
		}
	}
	for _, name := range rule.Callers {
		if !slices.Contains(c.callers, name) {
			c.add("callers", "no caller is named %q, only %s", name, named(c.callers))
		}
	}
	if p := rule.Percent; p != nil && (math.IsNaN(*p) || *p < 0 || *p > 100) {
		c.add("percent", "%v is no percentage from 0 to 100", *p)
	}
}

// named lists what there is, for whoever has misspelt it.
func named[T ~string](all []T) string {
	const most = 10
	if len(all) == 0 {
		return "none"
	}
	words := make([]string, 0, most+1)
	for _, one := range all[:min(len(all), most)] {
		words = append(words, string(one))
	}
	if len(all) > most {
		words = append(words, "others")
	}
	return strings.Join(words, ", ")
}

func (c *checker) texts(field string, list []string) {
	for _, text := range list {
		if strings.TrimSpace(text) == "" {
			c.add(field, "an empty text matches nothing")
		}
		if at := strings.IndexByte(text, '*'); field == "user_agents" && at >= 0 && at < len(text)-1 {
			c.add(field, "in %q the * is not at the end", text)
		}
	}
}

func (c *checker) ranges(field string, list []Range) {
	for _, r := range list {
		if r.From < 1 || r.To < 0 || r.To != 0 && r.To < r.From {
			c.add(field, "%s is no range of ids from 1 on", r)
		}
	}
}

// hidden looks for an earlier rule that takes all that this one would match.
func (c *checker) hidden(rule Rule) {
	for i, earlier := range c.rules[:c.at] {
		if covers(earlier, rule) {
			c.add("", "%q is never reached, because rule %d (%q) matches all that it matches", rule.Name, i+1, earlier.Name)
			return
		}
	}
}

// twoWriters warns when a rule tells callers apart and what they write goes
// elsewhere than what others write: one object can then be written in both.
func (c *checker) twoWriters(rule Rule) {
	byCaller := len(rule.Callers)+len(rule.UserAgents) > 0 || rule.Percent != nil
	last := c.rules[len(c.rules)-1]
	if byCaller && rule.Writes.Valid() && last.Writes.Valid() && rule.Writes.New() != last.Writes.New() {
		c.warn("writes", "these callers write elsewhere than the others, so one object can be written in both trackers")
	}
}
