package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"portico/proxy/admin/pages/transition"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/switchover"
)

// moveFlags are those of commands that move rules.
type moveFlags struct {
	version int64
	dryRun  bool
	despite []string
	wait    time.Duration
}

func (f *moveFlags) register(c *cobra.Command) *cobra.Command {
	flags := c.Flags()
	flags.Int64Var(&f.version, "version", 0, "the change was made on version `N` of the rules")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check the preconditions and change nothing; exit status as of plan")
	f.registerDespite(c)
	return c
}

func (f *moveFlags) registerDespite(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.despite, "despite", nil, "override the precondition `NAME`; may be given again")
}

// send asks the listener for a move. The response to a dry run is a plan, and any other one the status.
func (f *moveFlags) send(ctx context.Context, a *adminClient, path string, members map[string]any) error {
	members["version"], members["despite"], members["dry_run"] = f.version, f.despite, f.dryRun
	if !f.dryRun {
		return change(ctx, a, path, members, renderSwitchover)
	}
	text, err := a.post(ctx, path, members)
	_, err = planned(a, text, err)
	return err
}

// migrateStepCommand is portico migrate advance or reverse.
func migrateStepCommand(a *adminClient, verb, short string) *cobra.Command {
	flags := &moveFlags{}
	c := flags.register(command(verb+" RULE", short, func(ctx context.Context, args []string) error {
		status, err := read[switchover.Status](ctx, a, statusPath)
		if err != nil {
			return err
		}
		if verb == reverse && !flags.dryRun {
			if err := flags.drain(ctx, a, args[0], status); err != nil {
				return err
			}
		}
		flags.version = cmp.Or(flags.version, status.Version)
		return flags.send(ctx, a, "/switchover/"+verb, map[string]any{"rule": args[0]})
	}))
	if verb == reverse {
		c.Flags().DurationVar(&flags.wait, "wait", 10*time.Minute, "how long to wait until the writes are copied that the old tracker lacks")
	}
	return c
}

// migrateReviveCommand is portico migrate revive.
func migrateReviveCommand(a *adminClient) *cobra.Command {
	flags := &moveFlags{}
	c := command("revive", "end what kill began", func(ctx context.Context, _ []string) error {
		return change(ctx, a, "/switchover/revive", map[string]any{"despite": flags.despite}, renderSwitchover)
	})
	flags.registerDespite(c)
	return c
}

const (
	reverse = "reverse"
	// shortDrain is how many seconds of copying the step itself waits for.
	shortDrain = 2
	// drainPause is the time between two questions about the journal.
	drainPause = time.Second
)

// drain waits until the old tracker has the writes that a step back takes there, or most of them. Whether it has all is checked by the step.
func (f *moveFlags) drain(ctx context.Context, a *adminClient, name string, status switchover.Status) error {
	var total, left atomic.Int64
	shown := a.env.progress(func() string {
		all := max(1, total.Load())
		done := all - left.Load()
		return fmt.Sprintf("[%-30s] %d of %d entries are copied", strings.Repeat("#", int(30*done/all)), done, all)
	})
	defer shown.stop()
	for end := time.Now().Add(f.wait); time.Now().Before(end); {
		at := slices.IndexFunc(status.Rules, func(each switchover.RuleStatus) bool { return each.Rule.Name == name })
		if at < 0 {
			return nil // the step says so
		}
		rule := status.Rules[at]
		step := switchover.Step{Rule: rule.Rule, From: rule.Rule.Phases(), To: rule.Rule.Phases().Step(true)}
		if !step.MovesCopies() || rule.GoingBack.State != journal.OutlookDrain || rule.GoingBack.Seconds < shortDrain {
			return nil
		}
		if total.Load() == 0 {
			fmt.Fprintf(shown, "Going back is %s.\n", rule.GoingBack)
		}
		total.Store(max(total.Load(), rule.GoingBack.Drain))
		left.Store(rule.GoingBack.Drain)
		if !upstream.Pause(ctx, drainPause) {
			return ctx.Err()
		}
		var err error
		if status, err = read[switchover.Status](ctx, a, statusPath); err != nil {
			return err
		}
	}
	return nil
}

// exitUnknown is the exit status of a plan that cannot tell whether preconditions hold.
const exitUnknown = 2

// planned prints a plan. The exit status is its state.
func planned(a *adminClient, text []byte, err error) (plan transition.Plan, _ error) {
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &plan), a.print(text, func(w io.Writer) error {
			renderPlan(w, plan)
			return nil
		}))
	}
	return plan, cmp.Or(err, statusOf(plan))
}

// statusOf is the exit status of a plan.
func statusOf(plan transition.Plan) error {
	switch plan.State {
	case transition.StateFails:
		return exitError{status: exitFailed}
	case transition.StateUnknown:
		return exitError{status: exitUnknown}
	}
	return nil
}

func renderPlan(w io.Writer, plan transition.Plan) {
	fmt.Fprintf(w, "Version %d: %s\n", plan.Version, map[transition.State]string{
		transition.StateHolds: "ready", transition.StateFails: "not ready", transition.StateUnknown: "cannot tell",
	}[plan.State])
	for _, step := range plan.Steps {
		fmt.Fprintf(w, "%s: reads %s, writes %s", oneLine(step.Rule), step.From.Reads, step.From.Writes)
		if step.From == step.To {
			fmt.Fprintf(w, "; no further phase; going back is %s\n", oneLine(step.GoingBack.String()))
			continue
		}
		fmt.Fprintf(w, " → reads %s, writes %s; going back is %s\n", step.To.Reads, step.To.Writes, oneLine(step.GoingBack.String()))
		for _, each := range step.Preconditions {
			state := string(each.State)
			if each.Despite {
				state += ", overridden"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", each.Name, state, oneLine(each.Value))
		}
		for _, each := range step.Confirm {
			fmt.Fprintf(w, "  confirm\tnot checked\t%s\n", oneLine(each))
		}
		if len(step.Preconditions) == 0 {
			fmt.Fprintln(w, "  needs nothing: no caller moves by it")
		}
	}
}
