package switchover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"portico/mapping"
)

// Problem is one thing that is wrong with a table.
type Problem struct {
	// Rule is the index of the rule, -1 for the table itself.
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
	if p.Rule < 0 {
		return p.Message
	}
	place := fmt.Sprint("rule ", p.Rule+1)
	if p.Field != "" {
		place += ", " + p.Field
	}
	return place + ": " + p.Message
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
		c.phases("passthrough.", *t.Passthrough)
	}
	for i, rule := range t.Rules {
		c.at = i
		c.name(rule.Name)
		c.phases("", rule.Phases())
		c.conditions(rule)
		c.replicated(rule)
		for k, earlier := range t.Rules[:i] {
			if covers(earlier, rule) {
				c.add("", "%q is never reached, because rule %d (%q) matches all that it matches", rule.Name, k+1, earlier.Name)
				break
			}
		}
	}
	if t.Rules[c.at].Conditional() {
		c.add("", "the last rule must have no conditions, or there are calls that no rule is for")
	}
	if len(faults(c.found)) == 0 {
		c.callersApart()
		c.pairs()
	}
	slices.SortStableFunc(c.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return c.found
}

// faults are the problems that keep a table from working.
func faults(problems []Problem) []Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Warning })
}

// checker collects the problems of the rules, one rule after the other.
type checker struct {
	rules   []Rule
	callers []string
	at      int // the rule that is checked
	found   []Problem
}

func (c *checker) add(field, format string, args ...any) {
	c.found = append(c.found, Problem{Rule: c.at, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(field, format string, args ...any) {
	c.add(field, format, args...)
	c.found[len(c.found)-1].Warning = true
}

// name checks the name of a rule, which is a label of metrics and stands in lines of logs and terminals.
func (c *checker) name(name string) {
	switch {
	case strings.TrimSpace(name) == "":
		c.add("name", "a rule needs a name")
	case strings.ContainsFunc(name, unicode.IsControl):
		c.add("name", "%q has a line end or another control character in it", name)
	case slices.ContainsFunc(c.rules[:c.at], func(earlier Rule) bool { return earlier.Name == name }):
		c.add("name", "there is another rule %q", name)
	}
}

func (c *checker) phases(prefix string, pair PhasePair) {
	for field, phase := range map[string]Phase{"reads": pair.Reads, "writes": pair.Writes} {
		if !slices.Contains(Phases(), phase) {
			c.add(prefix+field, "%q is no phase: old, old-compare, new-compare or new", phase)
		}
	}
	if pair.Writes.New() && !pair.Reads.New() {
		c.add(prefix+"reads", "reads (%s) are behind writes (%s): what is written would not be visible", pair.Reads, pair.Writes)
	}
}

func (c *checker) conditions(rule Rule) {
	for field, texts := range map[string][]string{
		"products": rule.Products, "components": rule.Components, "callers": rule.Callers, "user_agents": rule.UserAgents,
	} {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" }) {
			c.add(field, "an empty text matches nothing")
		}
	}
	for _, text := range rule.UserAgents {
		if strings.Contains(strings.TrimSuffix(text, "*"), "*") {
			c.add("user_agents", "in %q the * is not at the end", text)
		}
	}
	for field, ranges := range map[string][]Range{"bugs": rule.Bugs, "attachments": rule.Attachments} {
		for _, r := range ranges {
			if _, err := ParseRange(r.String()); err != nil {
				c.add(field, "%s is no range of ids from 1 on", r)
			}
		}
	}
	for _, operation := range rule.Operations {
		if !slices.Contains(mapping.Operations(), operation) {
			c.add("operations", "there is no operation %q, only %q", operation, mapping.Operations())
		}
	}
	for _, name := range rule.Callers {
		if !slices.Contains(c.callers, name) {
			c.add("callers", "no caller is named %q, only %q", name, c.callers)
		}
	}
	if p := rule.Percent; p != nil && !(*p >= 0 && *p <= 100) {
		c.add("percent", "%v is no percentage from 0 to 100", *p)
	}
}

// replicated refuses conditions that could have two callers write one object to two trackers. Copies would then overwrite each other.
func (c *checker) replicated(rule Rule) {
	decidesWrites := len(rule.Operations) == 0 || slices.ContainsFunc(rule.Operations, mapping.Operation.IsWrite)
	if !decidesWrites || !slices.ContainsFunc(c.rules, func(one Rule) bool { return one.Replicate }) {
		return
	}
	for field, set := range map[string]bool{
		"callers": len(rule.Callers) > 0, "user_agents": len(rule.UserAgents) > 0, "operations": len(rule.Operations) > 0, "percent": rule.Percent != nil,
	} {
		if set {
			c.add(field, "only product, component, bugs and attachments may decide which tracker gets writes that are replicated")
		}
	}
}

// callersApart warns when a rule tells callers apart and what they write goes
// elsewhere than what others write: one object can then be written in both.
func (c *checker) callersApart() {
	last := c.rules[len(c.rules)-1]
	for i, rule := range c.rules {
		if (len(rule.Callers)+len(rule.UserAgents) > 0 || rule.Percent != nil) && rule.Writes.New() != last.Writes.New() {
			c.at = i
			c.warn("writes", "these callers write elsewhere than the others, so one object can be written in both trackers")
		}
	}
}
