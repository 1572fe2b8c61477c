package canary

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"portico/mapping"
)

// ruleCheck compiles one equivalence and says what is wrong with it.
type ruleCheck struct {
	at       int
	rule     *rule
	now      time.Time
	problems []RuleProblem
	wrong    bool
}

func (c *ruleCheck) say(field, format string, args ...any) {
	c.wrong = true
	c.problems = append(c.problems, RuleProblem{
		Rule: c.at, Name: c.rule.Name, Field: field, Message: fmt.Sprintf(format, args...),
	})
}

func (c *ruleCheck) run(names map[string]bool) {
	name := c.rule.Name
	switch {
	case strings.TrimSpace(name) == "":
		c.say("name", "a rule needs a name")
	case names[name]:
		c.say("name", "there is another rule %q", name)
	}
	names[name] = true
	if operation := c.rule.Operation; operation != "" && !slices.Contains(mapping.Operations(), operation) {
		c.say("operation", "there is no operation %q", operation)
	}
	c.path()
	c.kind()
	c.strangers()
	c.answerable()
}

// answerable checks who answers for the rule, why, and until when.
func (c *ruleCheck) answerable() {
	if strings.TrimSpace(c.rule.Owner) == "" {
		c.say("owner", "a rule needs an owner, who answers for it")
	}
	if strings.TrimSpace(c.rule.Reason) == "" {
		c.say("reason", "a rule needs a reason")
	}
	switch {
	case c.rule.Expires.IsZero():
		c.say("expires", "a rule needs an end")
	case !c.rule.Expires.After(c.now):
		c.problems = append(c.problems, RuleProblem{
			Rule: c.at, Name: c.rule.Name, Field: "expires", Warning: true,
			Message: "the rule ended on " + c.rule.Expires.UTC().Format(time.DateOnly) + " and excuses nothing any more",
		})
	}
}

// kind checks what the type needs.
func (c *ruleCheck) kind() {
	switch c.rule.Type {
	case TimeWithin:
		if c.rule.Within <= 0 {
			c.say("within", "a rule of this type needs a duration")
		}
	case Regex:
		c.pattern()
	case IDMap:
		if c.rule.Offset == 0 && len(c.rule.Table) == 0 {
			c.say("offset", "a rule of this type needs an offset or a table")
		}
	case IntAsBool, Set, URLHost:
	default:
		c.say("type", "there is no type %q: it is one of time-within, regex, int-as-bool, idmap, set, url-host", c.rule.Type)
	}
}

// pattern compiles the pattern so that it matches whole texts only.
func (c *ruleCheck) pattern() {
	if c.rule.Pattern == "" {
		c.say("pattern", "a rule of this type needs a pattern")
		return
	}
	_, err := regexp.Compile(c.rule.Pattern)
	if err == nil {
		c.rule.pattern, err = regexp.Compile(`\A(?:` + c.rule.Pattern + `)\z`)
	}
	if err != nil {
		c.say("pattern", "%v", err)
	}
}

// strangers checks for fields that belong to another type, and would do nothing.
func (c *ruleCheck) strangers() {
	for _, field := range []struct {
		name  string
		set   bool
		given EquivalenceType
	}{
		{"within", c.rule.Within != 0, TimeWithin},
		{"pattern", c.rule.Pattern != "", Regex},
		{"offset", c.rule.Offset != 0, IDMap},
		{"table", len(c.rule.Table) > 0, IDMap},
	} {
		if field.set && c.rule.Type != field.given {
			c.say(field.name, "only a rule of type %s has it", field.given)
		}
	}
}

func (c *ruleCheck) path() {
	compiled, err := compilePath(c.rule.Path)
	if err != nil {
		c.say("path", "%v", err)
		return
	}
	c.rule.path = compiled
}
