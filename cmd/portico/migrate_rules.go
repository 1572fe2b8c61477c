package main

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"portico/upstream/switchover"
)

// rulesFile is a file of rules: a part of the section switchover.
type rulesFile struct {
	Passthrough PhasesConfig `key:"passthrough"`
	Rules       []RuleConfig `key:"rules"`
}

// loadRules reads a file of rules and prints what is wrong with it. callers are the
// names that rules may use; with nil they are not checked, since only the running
// Portico knows them.
func loadRules(w io.Writer, file string, callers []string) (switchover.Table, bool, error) {
	content, err := openRules(file)
	if err != nil {
		return switchover.Table{}, false, fmt.Errorf("read the rules: %w", err)
	}
	defer content.Close()
	given := rulesFile{}
	root := reflect.ValueOf(&given).Elem()
	walk := &walker{problemList: problemList{origins: map[string]origin{}}, file: file, paths: leafPaths(root.Type(), "")}
	readable := walk.document(content, root)
	if len(given.Rules) == 0 && readable {
		walk.errorf("rules", "is empty: the last rule, without conditions, has to be there")
	}
	table := tableOf(given.Rules, given.Passthrough)
	if readable {
		found := problemList{origins: walk.origins}
		if callers == nil {
			callers = named(table)
		}
		given.Passthrough.validate(&found, "passthrough")
		reportTable(&found, "", table.Problems(callers))
		walk.join(found.problems)
	}
	problems := walk.sorted()
	for _, p := range problems {
		fmt.Fprintln(w, p)
	}
	return table, !fatal(problems), nil
}

// named lists the callers that a table speaks of.
func named(table switchover.Table) []string {
	var names []string
	for _, rule := range table.Rules {
		names = append(names, rule.Callers...)
	}
	return names
}

// diffTables shows what changes from one table to another, line by line: - goes
// and + comes. It is empty when nothing does.
func diffTables(before, after switchover.Table) string {
	from, to := tableLines(before), tableLines(after)
	var b strings.Builder
	changed := false
	for _, line := range diffLines(from, to) {
		changed = changed || line[0] != ' '
		b.WriteString(line + "\n")
	}
	if !changed {
		return ""
	}
	return b.String()
}

// tableLines is a table with a line for each rule.
func tableLines(table switchover.Table) []string {
	var lines []string
	for i, rule := range table.Rules {
		lines = append(lines, fmt.Sprintf("%s: reads %s, writes %s, %s", rule.Name, rule.Reads, rule.Writes, conditions(rule)))
		if i == len(table.Rules)-1 && table.Passthrough == nil {
			table.Passthrough = &switchover.PhasePair{Reads: rule.Reads, Writes: rule.Writes}
		}
	}
	if table.Passthrough != nil {
		lines = append(lines, fmt.Sprintf("(other paths): reads %s, writes %s", table.Passthrough.Reads, table.Passthrough.Writes))
	}
	return lines
}

// conditions says in one line what a rule matches.
func conditions(rule switchover.Rule) string {
	var all []string
	add := func(name string, values ...string) {
		if len(values) > 0 {
			all = append(all, name+" "+strings.Join(values, ", "))
		}
	}
	add("product", quoted(rule.Products)...)
	add("component", quoted(rule.Components)...)
	for _, r := range rule.Bugs {
		add("bugs", r.String())
	}
	for _, r := range rule.Attachments {
		add("attachments", r.String())
	}
	for _, operation := range rule.Operations {
		add("operation", string(operation))
	}
	add("caller", rule.Callers...)
	add("user agent", quoted(rule.UserAgents)...)
	if rule.Percent != nil {
		add(fmt.Sprintf("%g %% of the callers", *rule.Percent), "")
	}
	if len(all) == 0 {
		return "everything"
	}
	return strings.TrimSpace(strings.Join(all, "; "))
}

// quoted puts names in quotes that would not be told from a list of names.
func quoted(names []string) []string {
	all := slices.Clone(names)
	for i, name := range all {
		if strings.ContainsAny(name, ",;\"") || strings.TrimSpace(name) != name {
			all[i] = strconv.Quote(name)
		}
	}
	return all
}

// diffLines lines two lists up by their longest common part.
func diffLines(from, to []string) []string {
	common := make([][]int, len(from)+1)
	for i := range common {
		common[i] = make([]int, len(to)+1)
	}
	for i, goes := range slices.Backward(from) {
		for j, comes := range slices.Backward(to) {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if goes == comes {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var lines []string
	for i, j := 0, 0; i < len(from) || j < len(to); {
		switch {
		case i < len(from) && j < len(to) && from[i] == to[j]:
			lines, i, j = append(lines, "  "+from[i]), i+1, j+1
		case j == len(to) || i < len(from) && common[i+1][j] >= common[i][j+1]:
			lines, i = append(lines, "- "+from[i]), i+1
		default:
			lines, j = append(lines, "+ "+to[j]), j+1
		}
	}
	return lines
}
