// Package transition lets the rules of a switchover move only where preconditions hold: plans, moves one phase at a time, and overrides that are
// kept in the audit trail. The kill switch does not pass it.
package transition

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"portico/upstream"
	"portico/upstream/canary/verdict"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// Switchover is what a Gate reads and changes. *switchover.Switchover implements it.
type Switchover interface {
	// Status returns the active rules, with their hits.
	Status() switchover.Status
	// Change replaces the table that has the given version. Errors: *state.ConflictError, *switchover.InvalidError.
	Change(ctx context.Context, version int64, table switchover.Table, actor, reason string) error
	// Revive ends a kill.
	Revive(ctx context.Context, actor, reason string) error
}

// Gate checks preconditions. All fields but IDProblem are required.
type Gate struct {
	Switchover Switchover
	// Report returns what the comparison has found.
	Report func(context.Context) (verdict.Report, error)
	// OtherKeys says that comparisons show the candidate other credentials than live requests do.
	OtherKeys bool
	// Callers are those that have names, as they show themselves.
	Callers map[string]upstream.Caller
	// Probe makes a read of a tracker for a caller.
	Probe func(ctx context.Context, tracker string, caller upstream.Caller) error
	// IDProblem returns what is wrong with the translation of ids, empty for nothing, where both trackers get writes or only one does. Nil where ids
	// are not translated.
	IDProblem func(bothWrite bool) string
	// Missing lists the callers that were seen without a key at a tracker.
	Missing func(tracker string) []string
	// Journal returns the state of the journal, nil where nothing is recorded.
	Journal func(context.Context) (*journal.Status, error)
}

// Step is a change of the phases of one rule, with its preconditions. Without a change the rule is at the end of its way.
type Step struct {
	Rule string               `json:"rule"`
	From switchover.PhasePair `json:"from"`
	To   switchover.PhasePair `json:"to"`
	// Preconditions is empty where the step only changes what is compared.
	Preconditions []Precondition `json:"preconditions"`
	// Confirm lists what must hold and only people can know. It does not decide about the state of the plan.
	Confirm []string `json:"confirm,omitempty"`
	// GoingBack says whether the rule's writes can go back to the old tracker without loss.
	GoingBack journal.Outlook `json:"going_back"`
}

// Plan is steps that could be made.
type Plan struct {
	// Version is the one of the rules that the steps begin at.
	Version int64 `json:"version"`
	// State is the worst of all preconditions that are not overridden.
	State State  `json:"state"`
	Steps []Step `json:"steps"`
}

// Move is a change of the rules that has to be earned.
type Move struct {
	// Version is the one that the change is made on.
	Version int64 `json:"version"`
	// Rule is the one that is taken a step ahead or, with Back, back. Where it is empty, Table becomes the table.
	Rule  string           `json:"rule"`
	Back  bool             `json:"-"`
	Table switchover.Table `json:"table"`
	// DryRun changes nothing.
	DryRun bool   `json:"dry_run"`
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// Despite names the preconditions that need not hold.
	Despite []string `json:"despite"`
}

// UnreadyError says that preconditions do not hold. Nothing was changed.
type UnreadyError struct{ Plan Plan }

// Error implements error.
func (e *UnreadyError) Error() string {
	var lines []string
	for _, step := range e.Plan.Steps {
		for _, each := range step.Preconditions {
			if each.counts() {
				lines = append(lines, fmt.Sprintf("%s: %s %s (%s)", step.Rule, each.Name, each.State, each.Value))
			}
		}
	}
	return "preconditions are not met: " + strings.Join(lines, "; ")
}

// RequestError says that a request names what does not exist.
type RequestError struct{ What string }

// Error implements error.
func (e *RequestError) Error() string { return e.What }

// Plan returns the next step of each rule, or of the one with a name, ahead or back. The error is a *RequestError.
func (g *Gate) Plan(ctx context.Context, name string, back bool) (Plan, error) {
	status := g.Switchover.Status()
	var steps []switchover.Step
	var names []string
	for _, rule := range status.Table.Rules {
		names = append(names, rule.Name)
		if name == "" || rule.Name == name {
			steps = append(steps, switchover.Step{Rule: rule, From: rule.Phases(), To: rule.Phases().Step(back)})
		}
	}
	if len(steps) == 0 {
		return Plan{}, &RequestError{fmt.Sprintf("there is no rule %q: known are %s", name, strings.Join(names, ", "))}
	}
	return g.check(ctx, status, steps), nil
}

// Move makes a change if the preconditions of all its steps are met or overridden. Errors are *UnreadyError, *RequestError, *state.ConflictError
// where the process is not at the version, and those of Change. A table that cannot be used is refused by Change.
func (g *Gate) Move(ctx context.Context, m Move) (plan Plan, err error) {
	status := g.Switchover.Status()
	invalid := func(p switchover.Problem) bool { return !p.Warning }
	switch {
	case m.Version != status.Version && !m.DryRun:
		// The process may not know yet what another one has changed: a step from former phases would undo that.
		return plan, &state.ConflictError{Present: state.Revision{Version: status.Version, Actor: status.Actor}}
	case m.Rule != "":
		if plan, err = g.Plan(ctx, m.Rule, m.Back); err == nil {
			m.Table, err = moved(status.Table, plan.Steps[0])
		}
	case len(m.Table.Rules) > 0 && !slices.ContainsFunc(m.Table.Problems(status.Callers), invalid):
		next := status
		next.Table = m.Table // so that what rules that are gone have written counts
		plan = g.check(ctx, next, switchover.Steps(status.Table, m.Table))
	}
	if err != nil {
		return plan, err
	}
	overridden, err := plan.override(m.Despite)
	switch {
	case err != nil, m.DryRun:
		return plan, err
	case plan.State != StateHolds && plan.State != "":
		return plan, &UnreadyError{plan}
	}
	return plan, g.Switchover.Change(ctx, m.Version, m.Table, m.Actor, signedOff(m.Reason, overridden))
}

// Revive ends a kill, if each rule whose copied writes go back to the new tracker finds there what was written meanwhile. Errors are
// *UnreadyError, *RequestError, and those of the Switchover.
func (g *Gate) Revive(ctx context.Context, actor, reason string, despite []string) error {
	status, plan := g.Switchover.Status(), Plan{}
	var entries recorded
	entries.Status, entries.err = g.Journal(ctx)
	for _, rule := range status.Table.Rules {
		if rule.Replicate && rule.Writes.New() {
			needs := entries.copied(status.Outlook(rule, status.New, entries.Status), status.New)
			plan.Steps = append(plan.Steps, Step{Rule: rule.Name, To: rule.Phases(), Preconditions: needs})
		}
	}
	overridden, err := plan.override(despite)
	switch {
	case err != nil:
		return err
	case plan.State != StateHolds && status.Killed != nil:
		return &UnreadyError{plan}
	}
	return g.Switchover.Revive(ctx, actor, signedOff(reason, overridden))
}

// signedOff adds what an operator has overridden to the reason.
func signedOff(reason string, overridden []string) string {
	if len(overridden) == 0 {
		return reason
	}
	return reason + " (despite " + strings.Join(overridden, ", ") + ")"
}

// moved returns a table after one step.
func moved(table switchover.Table, step Step) (switchover.Table, error) {
	if step.From == step.To {
		return table, &RequestError{fmt.Sprintf("rule %q has no further phase: reads %s, writes %s", step.Rule, step.From.Reads, step.From.Writes)}
	}
	table.Rules = slices.Clone(table.Rules)
	for i := range table.Rules {
		if rule := &table.Rules[i]; rule.Name == step.Rule {
			rule.Reads, rule.Writes = step.To.Reads, step.To.Writes
		}
	}
	return table, nil
}

// override marks the preconditions with names that are not met, and lists them. The error is a *RequestError.
func (p *Plan) override(names []string) (overridden []string, err error) {
	for _, name := range names {
		if !slices.Contains(preconditionNames(), name) {
			return nil, &RequestError{fmt.Sprintf("there is no precondition %q; known are %s", name, strings.Join(preconditionNames(), ", "))}
		}
	}
	for _, step := range p.Steps {
		for i := range step.Preconditions {
			if each := &step.Preconditions[i]; each.counts() && slices.Contains(names, each.Name) {
				each.Despite = true
				overridden = append(overridden, step.Rule+" "+each.Name)
			}
		}
	}
	p.judge()
	return overridden, nil
}

// judge sets the state of the plan.
func (p *Plan) judge() {
	p.State = StateHolds
	for _, step := range p.Steps {
		for _, each := range step.Preconditions {
			if each.counts() && p.State != StateFails {
				p.State = each.State
			}
		}
	}
}
