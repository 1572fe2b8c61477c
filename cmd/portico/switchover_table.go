package main

import (
	"cmp"
	"fmt"
	"math"

	"portico/mapping"
	"portico/upstream/switchover"
)

// table gives the configured rules in the form of the room that follows them.
// Without any, everything is compared and nothing moves.
func (c *Config) table() switchover.Table {
	return tableOf(c.Switchover.Rules, c.Switchover.Passthrough)
}

func tableOf(rules []RuleConfig, passthrough PhasesConfig) switchover.Table {
	var table switchover.Table
	for i, rule := range rules {
		if i == len(rules)-1 && rule.Percent.Percent == everybody {
			rule.Percent = Share{} // the last one is for everybody anyway
		}
		table.Rules = append(table.Rules, rule.rule())
	}
	if len(rules) == 0 {
		rule := RuleConfig{Name: "default"}
		rule.SetDefaults()
		table.Rules = append(table.Rules, rule.rule())
	}
	if passthrough.Reads != "" && passthrough.Writes != "" {
		table.Passthrough = &switchover.PhasePair{
			Reads: switchover.Phase(passthrough.Reads), Writes: switchover.Phase(passthrough.Writes),
		}
	}
	return table
}

// rule gives one rule in that form.
func (r RuleConfig) rule() switchover.Rule {
	rule := switchover.Rule{
		Name: r.Name, Products: r.Product, Components: r.Component, Bugs: ranges(r.Bugs), Attachments: ranges(r.Attachments),
		Callers: r.Caller, UserAgents: r.UserAgent, Reads: switchover.Phase(r.Reads), Writes: switchover.Phase(r.Writes),
	}
	for _, operation := range r.Operation {
		rule.Operations = append(rule.Operations, mapping.Operation(operation))
	}
	if r.Percent.Given {
		rule.Percent = &r.Percent.Percent
	}
	return rule
}

func ranges(list []IDRange) []switchover.Range {
	var all []switchover.Range
	for _, r := range list {
		if r.To == math.MaxInt64 {
			r.To = 0 // which has no end
		}
		all = append(all, switchover.Range{From: r.From, To: r.To})
	}
	return all
}

// ruleKeys are the keys of the configuration for the members of a rule.
var ruleKeys = map[string]string{
	"products": "product", "components": "component", "operations": "operation", "callers": "caller", "user_agents": "user_agent",
}

// problemPath is the path of what is wrong with a table, below the section that the
// table stands in.
func problemPath(section string, p switchover.Problem) string {
	field := cmp.Or(ruleKeys[p.Field], p.Field)
	switch {
	case p.Rule >= 0 && field != "":
		return join(fmt.Sprintf("%s[%d]", join(section, "rules"), p.Rule), field)
	case p.Rule >= 0:
		return fmt.Sprintf("%s[%d]", join(section, "rules"), p.Rule)
	case field != "":
		return join(section, field)
	}
	return join(section, "rules")
}

// reportTable reports what is wrong with a table at the places it was read from.
func reportTable(l *problemList, section string, problems []switchover.Problem) {
	for _, p := range problems {
		if path := problemPath(section, p); p.Warning {
			l.warnf(path, "%s", p.Message)
		} else {
			l.errorf(path, "%s", p.Message)
		}
	}
}
