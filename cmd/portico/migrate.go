package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/proxy/admin"
	"portico/proxy/admin/pages/transition"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// migrateCommand is portico migrate.
func migrateCommand(env environment) *cobra.Command {
	a := &adminClient{output: output{env: env}}
	c := a.group("migrate", "show and change which of two trackers responds to what",
		`Ask a running Portico through its admin listener, except for ids and journal, which open the store.

plan prints the next step of each rule, or what FILE would change, with the preconditions. It changes nothing.
apply makes FILE active if the rules are still at the version that --version names.
advance and reverse move one rule one step ahead or back.
kill sends everything to the old tracker at once, whatever the rules say, until revive.

FILE has the keys rules and passthrough of the section switchover of a configuration; - is standard input.
apply, advance, reverse and revive refuse a move while a precondition does not hold, unless --despite names it.
They and kill need --actor and --reason. A change holds until the rules in the configuration change.

Exit codes of plan: 0 all preconditions hold, 1 one does not, 2 one cannot be told or Portico cannot be asked.`,
		nil,
		command("status", "print the active rules", func(ctx context.Context, _ []string) error {
			return fetch(ctx, a, statusPath, renderSwitchover)
		}),
		migratePlanCommand(a), migrateApplyCommand(a),
		migrateStepCommand(a, "advance", "take a rule one step ahead, reads first"),
		migrateStepCommand(a, reverse, "take a rule one step back"),
		command("history", "print who changed the rules, and what else operators did, when and why", func(ctx context.Context, _ []string) error {
			return fetch(ctx, a, "/switchover/history.json", renderHistory)
		}),
		command("kill", "send everything to the old tracker at once", func(ctx context.Context, _ []string) error {
			return change(ctx, a, "/switchover/kill", map[string]any{}, renderSwitchover)
		}),
		migrateReviveCommand(a))
	a.signatureFlags(c.PersistentFlags())
	c.AddCommand(idsCommand(a), journalCommand(a))
	return c
}

// statusPath is where the admin listener has a switchover.Status.
const statusPath = "/switchover/status.json"

func renderSwitchover(w io.Writer, status *switchover.Status) {
	fmt.Fprintf(w, "From %s to %s: version %d, from the %s", status.Old, status.New, status.Version, sourceName(status.Source))
	if status.Actor != "" {
		fmt.Fprintf(w, ", by %s (%s)", oneLine(status.Actor), oneLine(status.Reason))
	}
	fmt.Fprintln(w)
	if killed := status.Killed; killed != nil {
		fmt.Fprintf(w, "KILLED by %s at %s (%s): everything goes to %s.\n",
			oneLine(killed.Actor), killed.At.Format("2006-01-02 15:04:05Z07:00"), oneLine(killed.Reason), status.Old)
		for _, missing := range killed.Missing {
			fmt.Fprintf(w, "%s lacks: %s.\n", status.Old, oneLine(missing))
		}
	}
	if status.CopyingPaused {
		fmt.Fprintln(w, "Copying is paused. See portico migrate journal list, then: portico migrate journal resume")
	}
	if len(status.Moving) > 0 {
		fmt.Fprintf(w, "Writes are about to move, and wait: %s.\n", strings.Join(status.Moving, ", "))
	}
	if status.Undelivered != "" {
		fmt.Fprintf(w, "Only this process knows of the kill yet; the store has not been told: %s\n", status.Undelivered)
	}
	if status.Stale != "" {
		fmt.Fprintf(w, "Changes made elsewhere are not known here: %s\n", status.Stale)
	}
	fmt.Fprintf(w, "RULE\tREADS\tWRITES\tTO %s\tTO %s\tWHERE\n", strings.ToUpper(status.Old), strings.ToUpper(status.New))
	for _, each := range status.Rules {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", each.Rule.Name, each.Rule.Reads, each.Rule.Writes,
			each.Hits[status.Old], each.Hits[status.New], conditions(each.Rule))
	}
	fmt.Fprintf(w, "(other paths)\t%s\t%s\t\t\t\n", status.Passthrough.Reads, status.Passthrough.Writes)
	for _, each := range status.Rules {
		fmt.Fprintf(w, "%s: going back is %s\n", oneLine(each.Rule.Name), oneLine(each.GoingBack.String()))
	}
}

// oneLine keeps a text that an operator gave from looking like lines of this program, or moving the cursor.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ")
}

// sourceName says where rules come from.
func sourceName(source string) string {
	if source == state.SourceConfig {
		return "configuration"
	}
	return "admin listener"
}

// renderHistory prints the versions of the rules, and the audit trail.
func renderHistory(w io.Writer, found *struct {
	History []struct {
		state.Revision
		Changes []string
	}
	Audit []state.Record
}) {
	fmt.Fprintln(w, "VERSION\tAT\tFROM\tBY\tWHY\tCHANGES")
	for _, each := range found.History {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", each.Version, each.At.Format(time.RFC3339), sourceName(each.Source), oneLine(each.Actor),
			oneLine(each.Reason), oneLine(strings.Join(each.Changes, "; ")))
	}
	fmt.Fprintln(w, "\nAT\tDONE\tTO\tBY\tWHY")
	for _, each := range found.Audit {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", each.At.Format(time.RFC3339), each.Action, oneLine(each.Subject), oneLine(each.Actor), oneLine(each.Reason))
	}
}

// migratePlanCommand is portico migrate plan.
func migratePlanCommand(a *adminClient) *cobra.Command {
	rule := ""
	c := command("plan [FILE]", "print the next step of each rule, or what a file of rules would change", func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return planFile(ctx, a, args[0])
		}
		text, err := a.get(ctx, "/switchover/plan.json?"+url.Values{"rule": {rule}}.Encode())
		if err != nil {
			return exitError{exitUnknown, err}
		}
		plan, err := planned(a, text, nil)
		status, _ := read[switchover.Status](ctx, a, statusPath)
		for _, step := range plan.Steps {
			for i := range status.Table.Rules {
				if rule := &status.Table.Rules[i]; rule.Name == step.Rule {
					rule.Writes = step.To.Writes
				}
			}
		}
		warnOfWrites(ctx, a, status, status.Table)
		return err
	})
	c.Flags().StringVar(&rule, "rule", "", "only the rule `NAME`")
	return c
}

// planFile is portico migrate plan FILE.
func planFile(ctx context.Context, a *adminClient, file string) error {
	status, err := read[switchover.Status](ctx, a, statusPath)
	if err != nil {
		return exitError{exitUnknown, err}
	}
	next, err := loadRules(a.env, file, status.Callers)
	if err != nil {
		return err
	}
	changes, changed := diffLines(tableLines(status.Table), tableLines(next))
	result := map[string]any{"version": status.Version, "changed": changed, "rules": changes}
	var plan transition.Plan
	if changed {
		text, err := a.post(ctx, "/switchover/rules", map[string]any{"table": next, "version": status.Version, "dry_run": true})
		if err := cmp.Or(err, json.Unmarshal(text, &plan)); err != nil {
			return err
		}
		result["plan"] = plan
	}
	warnOfWrites(ctx, a, status, next) // now that the preconditions have made Portico ask both trackers
	return cmp.Or(a.value(result, func(w io.Writer) error {
		if !changed {
			fmt.Fprintf(w, "Nothing would change: version %d says the same.\n", status.Version)
			return nil
		}
		fmt.Fprintln(w, strings.Join(changes, "\n"))
		renderPlan(w, plan)
		fmt.Fprintf(w, "Apply it with: portico migrate apply %s --version %d --actor NAME --reason TEXT\n", file, status.Version)
		return nil
	}), statusOf(plan))
}

// migrateApplyCommand is portico migrate apply.
func migrateApplyCommand(a *adminClient) *cobra.Command {
	flags := &moveFlags{}
	return flags.register(command("apply FILE --version N", "make a file of rules active", func(ctx context.Context, args []string) error {
		if flags.version <= 0 {
			return usageError("needs --version: the one that portico migrate status and plan show")
		}
		next, err := loadRules(a.env, args[0], nil)
		if err != nil {
			return err
		}
		return flags.send(ctx, a, "/switchover/rules", map[string]any{"table": next})
	}))
}

// loadRules reads a file of rules and prints what is wrong with it. callers are the names that rules may use; nil leaves them
// unchecked, since only the running Portico knows them.
func loadRules(env environment, file string, callers []string) (switchover.Table, error) {
	if file == "-" {
		file = "/dev/stdin"
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return switchover.Table{}, fmt.Errorf("read the rules: %w", err)
	}
	table, problems := config.LoadRules(file, content, callers)
	return table, env.tell(problems)
}

// writesWarnings returns a line for each rule that sends flag type writes to the new tracker, or to the old one, where its dialect has none.
func writesWarnings(rules []switchover.Rule, tracker string, toNew bool, dialect string) (warnings []string) {
	if known, ok := mapping.DialectNamed(dialect); !ok || known.FlagTypeWrites {
		return nil
	}
	for _, rule := range switchover.FlagTypeWriters(rules, toNew) {
		warnings = append(warnings, fmt.Sprintf("rule %s sends flag type writes to tracker %s, which has none (dialect %s): they are refused", rule, tracker, dialect))
	}
	return warnings
}

// warnOfWrites prints which rules send flag type writes to a tracker that has none, as far as the dialects are known.
func warnOfWrites(ctx context.Context, a *adminClient, status switchover.Status, next switchover.Table) {
	found, _ := read[admin.Status](ctx, a, "/status")
	for _, name := range []string{status.Old, status.New} {
		for _, warning := range writesWarnings(next.Rules, name, name == status.New, found.Trackers[name].Dialect) {
			fmt.Fprintln(a.env.stderr, "warning: "+warning)
		}
	}
}

// diffLines returns the lines of both lists, with "- " before those that go and "+ " before those that come.
func diffLines(from, to []string) (lines []string, changed bool) {
	changed = !slices.Equal(from, to)
	for _, line := range from {
		at := slices.Index(to, line)
		if at < 0 {
			lines = append(lines, "- "+line)
			continue
		}
		for _, added := range to[:at] {
			lines = append(lines, "+ "+added)
		}
		lines, to = append(lines, "  "+line), to[at+1:]
	}
	for _, added := range to {
		lines = append(lines, "+ "+added)
	}
	return lines, changed
}

// tableLines is a table with a line for each rule.
func tableLines(table switchover.Table) (lines []string) {
	others := table.Passthrough
	for _, rule := range table.Rules {
		lines = append(lines, fmt.Sprintf("%s: reads %s, writes %s, %s", rule.Name, rule.Reads, rule.Writes, conditions(rule)))
		if table.Passthrough == nil {
			others = &switchover.PhasePair{Reads: rule.Reads, Writes: rule.Writes} // what the last rule says
		}
	}
	if table.PassedCopied {
		lines = append(lines, "(other paths): copied by other means")
	}
	if others != nil {
		lines = append(lines, fmt.Sprintf("(other paths): reads %s, writes %s", others.Reads, others.Writes))
	}
	return lines
}

// conditions says in one line what a rule matches, and whether its writes are copied.
func conditions(rule switchover.Rule) string {
	text := cmp.Or(strings.Join(rule.Conditions(), "; "), "everything")
	if rule.Replicate {
		text += "; writes are copied"
	}
	return text
}
