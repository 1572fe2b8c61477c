package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"portico/upstream/switchover"
)

// migrateCommand is portico migrate.
func migrateCommand() command {
	return command{
		name:      "migrate",
		arguments: "status | plan FILE | apply FILE --version N | kill | revive | history [flags]",
		summary:   "which of two trackers answers what, and moving on or back",
		details: "Ask the operators' listener of a running Portico. FILE holds the keys rules and passthrough as the\n" +
			"section switchover of a configuration has them. plan checks it and prints what it would change,\n" +
			"changing nothing; apply puts it in force, if the rules still are at the version that --version names.\n" +
			"kill takes everything back to the old tracker at once, whatever the rules say, until revive. apply,\n" +
			"kill and revive need --actor and --reason. What is applied holds until the rules in the configuration\n" +
			"change.",
		prepare: func(fs *flag.FlagSet) runner {
			c := migrateCaller{}
			c.register(fs)
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if len(args) == 0 {
					return exitUsage, usageError{"needs a word: status, plan, apply, kill, revive or history"}
				}
				rest, err := parseMixed(fs, args[1:])
				if err != nil {
					return exitUsage, err
				}
				return c.run(ctx, env, args[0], rest)
			}
		},
	}
}

// migrateCaller asks the operators' listener about the switchover.
type migrateCaller struct {
	operatorsCaller

	actor, reason string
	version       int64
	json          bool
}

func (c *migrateCaller) register(fs *flag.FlagSet) {
	c.operatorsCaller.register(fs)
	fs.StringVar(&c.actor, "actor", "", "`NAME` is who does it, for the audit trail")
	fs.StringVar(&c.reason, "reason", "", "`TEXT` is why, for the audit trail")
	fs.Int64Var(&c.version, "version", 0, "the change was made on version `N` of the rules")
	fs.BoolVar(&c.json, "json", false, "print JSON")
}

func (c *migrateCaller) run(ctx context.Context, env environment, word string, args []string) (int, error) {
	switch {
	case word == "status" && len(args) == 0:
		return exitOK, c.status(ctx, env.stdout)
	case word == "history" && len(args) == 0:
		return exitOK, c.history(ctx, env.stdout)
	case word == "plan" && len(args) == 1:
		return c.plan(ctx, env, args[0])
	case word == "apply" && len(args) == 1:
		return c.apply(ctx, env, args[0])
	case (word == "kill" || word == "revive") && len(args) == 0:
		return exitOK, c.throw(ctx, env.stdout, word)
	}
	return exitUsage, usageError{"takes status, plan FILE, apply FILE, kill, revive or history"}
}

// present asks for the rules that count.
func (c *migrateCaller) present(ctx context.Context) (switchover.Status, error) {
	var status switchover.Status
	return status, c.getJSON(ctx, "/switchover/status.json", &status)
}

func (c *migrateCaller) status(ctx context.Context, w io.Writer) error {
	if c.json {
		return c.copy(ctx, w, "/switchover/status.json")
	}
	status, err := c.present(ctx)
	if err != nil {
		return err
	}
	return printSwitchover(w, status)
}

// copy prints what the listener has under a path.
func (c *migrateCaller) copy(ctx context.Context, w io.Writer, path string) error {
	text, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func printSwitchover(w io.Writer, status switchover.Status) error {
	fmt.Fprintf(w, "From %s to %s: version %d, from the %s", status.Old, status.New, status.Version, sourceName(status.Source))
	if status.Actor != "" {
		fmt.Fprintf(w, ", by %s (%s)", oneLine(status.Actor), oneLine(status.Reason))
	}
	fmt.Fprintln(w)
	if status.Killed != nil {
		fmt.Fprintf(w, "KILLED by %s at %s (%s): everything goes to %s.\n",
			oneLine(status.Killed.Actor), status.Killed.At.Format("2006-01-02 15:04:05Z07:00"), oneLine(status.Killed.Reason), status.Old)
	}
	if status.Undelivered != "" {
		fmt.Fprintf(w, "Only this process knows of the kill yet; the store has not been told: %s\n", status.Undelivered)
	}
	if status.Stale != "" {
		fmt.Fprintf(w, "Changes made elsewhere are not known here: %s\n", status.Stale)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "RULE\tREADS\tWRITES\tTO %s\tTO %s\tWHERE\n", strings.ToUpper(status.Old), strings.ToUpper(status.New))
	for _, each := range status.Rules {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", each.Rule.Name, each.Rule.Reads, each.Rule.Writes,
			each.Hits[status.Old], each.Hits[status.New], conditions(each.Rule))
	}
	fmt.Fprintf(table, "(other paths)\t%s\t%s\t\t\t\n", status.Passthrough.Reads, status.Passthrough.Writes)
	return table.Flush()
}

// oneLine keeps what somebody gave as a text from looking like lines of this program, or moving the cursor.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
}

// sourceName says where rules come from.
func sourceName(source string) string {
	if source == "config" {
		return "configuration"
	}
	return "admin listener"
}

func (c *migrateCaller) history(ctx context.Context, w io.Writer) error {
	if c.json {
		return c.copy(ctx, w, "/switchover/history.json")
	}
	var answer struct {
		History []struct {
			Version               int64
			At                    string
			Source, Actor, Reason string
		}
	}
	if err := c.getJSON(ctx, "/switchover/history.json", &answer); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tAT\tFROM\tBY\tWHY")
	for _, one := range answer.History {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", one.Version, one.At, sourceName(one.Source), oneLine(one.Actor), oneLine(one.Reason))
	}
	return table.Flush()
}

// throw throws the kill switch, or takes it back.
func (c *migrateCaller) throw(ctx context.Context, w io.Writer, word string) error {
	form, err := signed(c.actor, c.reason)
	if err != nil {
		return err
	}
	text, err := c.post(ctx, "/switchover/"+word, form)
	if err != nil {
		return err
	}
	return c.after(w, text)
}

// after prints the state that a change has led to.
func (c *migrateCaller) after(w io.Writer, text []byte) error {
	if c.json {
		_, err := w.Write(text)
		return err
	}
	var status switchover.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return printSwitchover(w, status)
}

// plan prints what a file of rules would change.
func (c *migrateCaller) plan(ctx context.Context, env environment, file string) (int, error) {
	status, err := c.present(ctx)
	if err != nil {
		return exitFailed, err
	}
	next, ok, err := loadRules(env.stderr, file, status.Callers)
	if err != nil || !ok {
		return exitFailed, err
	}
	difference := diffTables(status.Table, next)
	if difference == "" {
		_, err := fmt.Fprintf(env.stdout, "Nothing would change: version %d says the same.\n", status.Version)
		return exitOK, err
	}
	_, err = fmt.Fprintf(env.stdout, "%sPut it in force with: portico migrate apply %s --version %d\n", difference, file, status.Version)
	return exitOK, err
}

// apply puts a file of rules in force.
func (c *migrateCaller) apply(ctx context.Context, env environment, file string) (int, error) {
	if _, err := signed(c.actor, c.reason); err != nil {
		return exitUsage, err
	}
	if c.version <= 0 {
		return exitUsage, usageError{"needs --version: the one that portico migrate status and plan show"}
	}
	next, ok, err := loadRules(env.stderr, file, nil)
	if err != nil || !ok {
		return exitFailed, err
	}
	text, err := c.postJSON(ctx, "/switchover/rules", map[string]any{
		"version": c.version, "actor": c.actor, "reason": c.reason, "table": next,
	})
	if err != nil {
		return exitFailed, err
	}
	return exitOK, c.after(env.stdout, text)
}

// openRules opens a file of rules; a hyphen is standard input.
func openRules(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(file)
}
