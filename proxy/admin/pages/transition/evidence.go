package transition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/verdict"
	"portico/upstream/journal"
	"portico/upstream/switchover"
)

// State says whether a precondition holds.
type State string

// The states of preconditions.
const (
	StateHolds   State = "holds"
	StateFails   State = "fails"
	StateUnknown State = "unknown"
)

// Precondition is something that must hold before a step.
type Precondition struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Value says in words what was found.
	Value string `json:"value"`
	// Despite says that the operator overrides it.
	Despite bool `json:"despite,omitempty"`
}

// The names of preconditions.
const (
	needOnePhase    = "one-phase"
	needVerdict     = "verdict"
	needFreshness   = "freshness"
	needErrors      = "errors"
	needStability   = "stability"
	needCredentials = "credentials"
	needTrackers    = "trackers"
	needKeys        = "keys"
	needCallers     = "callers"
	needIDs         = "ids"
	needJournal     = "journal"
	needLosses      = "losses"
)

func preconditionNames() []string {
	return []string{
		needOnePhase, needVerdict, needFreshness, needErrors, needStability, needCredentials, needTrackers, needKeys, needCallers, needIDs, needJournal,
		needLosses,
	}
}

// counts reports whether the precondition stands against a step.
func (p Precondition) counts() bool { return p.State != StateHolds && !p.Despite }

const (
	// maxAge is the maximum age of the last comparison.
	maxAge = 24 * time.Hour
	// probeTime bounds the probes of both trackers.
	probeTime = 15 * time.Second
	// maxProbes is the maximum number of concurrent probes.
	maxProbes = 8
	// maxDrain is how long copies may take that a move of writes waits for.
	maxDrain = 5 * time.Second
)

// found is what was found out for all steps of a plan.
type found struct {
	report verdict.Report
	err    error
	probes []Precondition
}

// recorded is the state of the journal.
type recorded struct {
	*journal.Status
	err error
}

// check finds out the preconditions of steps. Nothing is asked where there are none.
func (g *Gate) check(ctx context.Context, status switchover.Status, steps []switchover.Step) Plan {
	var known found
	if slices.ContainsFunc(steps, changes) {
		known.probes = g.probe(ctx, status)
		known.report, known.err = g.Report(ctx)
	}
	var entries recorded
	entries.Status, entries.err = g.Journal(ctx) // last, since a move leaves behind what is parked when it begins
	plan := Plan{Version: status.Version, Steps: []Step{}}
	for _, step := range steps {
		checked := Step{
			Rule: step.Rule.Name, From: step.From, To: step.To, Preconditions: []Precondition{},
			GoingBack: status.GoingBack(step.From.Writes, step.Rule, entries.Status),
		}
		if changes(step) {
			to := status.Old
			if ahead, _ := step.Distance(); ahead > 0 {
				to = status.New
				checked.Preconditions = append(known.compared(step.Rule),
					precondition(needOnePhase, ahead == 1, "phases ahead at once: %d (limit 1)", ahead), g.credentials(), g.ids(step))
			}
			checked.Preconditions = append(append(checked.Preconditions, known.probes...), g.callers(to))
			checked.Confirm = confirmations(step, status)
			if step.MovesCopies() {
				checked.Preconditions = append(checked.Preconditions, entries.copied(status.Outlook(step.Rule, to, entries.Status), to)...)
			}
		}
		plan.Steps = append(plan.Steps, checked)
	}
	plan.judge()
	return plan
}

func changes(step switchover.Step) bool {
	ahead, back := step.Distance()
	return ahead+back > 0
}

// confirmations lists what only people can know about a step.
func confirmations(step switchover.Step, status switchover.Status) []string {
	receiver := status.New
	if step.To.Writes.New() {
		receiver = status.Old
	}
	if !step.Rule.Replicate {
		return nil
	}
	return []string{receiver + " sends no mail about the writes that are copied to it"}
}

// credentials is the precondition that comparisons say something about the keys of live requests.
func (g *Gate) credentials() Precondition {
	value := "comparisons show the candidate what live requests show"
	if g.OtherKeys {
		value = "comparisons show the candidate other keys than live requests do: set credentials of the tracker in place of canary.credentials"
	}
	return precondition(needCredentials, !g.OtherKeys, "%s", value)
}

// ids is the precondition that no id comes to mean two objects.
func (g *Gate) ids(step switchover.Step) Precondition {
	if g.IDProblem == nil {
		return precondition(needIDs, true, "no ids are translated")
	}
	problem := g.IDProblem(step.To.Writes.New() || step.Rule.Replicate)
	return precondition(needIDs, problem == "", "%s", cmp.Or(problem, "ids of the old tracker are below the offset"))
}

// copied are the preconditions that a tracker has, or gets soon, all that was written at the other one, and that no write is never copied.
func (r recorded) copied(o journal.Outlook, to string) []Precondition {
	waiting, losses := o.Parts()
	soon := waiting.State == journal.OutlookSafe || waiting.State == journal.OutlookDrain && waiting.Seconds <= maxDrain.Seconds()
	all := []Precondition{precondition(needJournal, soon, "a move of writes to %s is %s", to, waiting)}
	if r.err != nil || r.Status == nil {
		all[0].State, all[0].Value = StateUnknown, "the journal cannot be read"
		return all
	}
	return append(all, precondition(needLosses, losses.State == journal.OutlookSafe, "a move of writes to %s is %s", to, losses))
}

// callers is the precondition that callers that were seen have a key at a tracker.
func (g *Gate) callers(tracker string) Precondition {
	missing := g.Missing(tracker)
	p := precondition(needCallers, len(missing) == 0, "%d seen without a key at %s", len(missing), tracker)
	if len(missing) > 0 {
		p.Value += ": " + strings.Join(missing, ", ")
	}
	return p
}

func precondition(name string, holds bool, format string, args ...any) Precondition {
	p := Precondition{Name: name, State: StateFails, Value: fmt.Sprintf(format, args...)}
	if holds {
		p.State = StateHolds
	}
	return p
}

// compared are the preconditions on the comparisons of a rule's own calls, as far as they are counted apart.
func (f *found) compared(rule switchover.Rule) []Precondition {
	if f.err != nil {
		return []Precondition{{Name: needVerdict, State: StateUnknown, Value: "the store cannot be read: " + f.err.Error()}}
	}
	v, of := f.report.Overall, "all comparisons: they are counted by operation only"
	if len(rule.Operations) > 0 {
		v, of = f.of(rule.Operations), "the operations of the rule"
	} else if !rule.Conditional() {
		of = "all comparisons"
	}
	count := humanize.Comma(v.Compared)
	judged := precondition(needVerdict, v.Verdict == verdict.Pass, "%s of %s comparisons (%s)", v.Verdict, count, of)
	if v.Verdict == verdict.Inconclusive {
		judged.State = StateUnknown
	}
	var last time.Time
	for _, point := range f.report.Timeline {
		if point.Compared > 0 {
			last = point.At
		}
	}
	age := f.report.At.Sub(last)
	fresh := precondition(needFreshness, age <= maxAge, "the last comparison was at most %.0f h ago (limit %.0f h)", math.Ceil(age.Hours()), maxAge.Hours())
	limit := f.report.Target * float64(v.Compared)
	failed := precondition(needErrors, float64(v.Failed) <= limit, "%s of %s without a valid reply", humanize.Comma(v.Failed), count)
	steady := precondition(needStability, float64(v.Unstable) <= limit, "%s of %s with differences that went away", humanize.Comma(v.Unstable), count)
	all := []Precondition{judged, fresh, failed, steady}
	for i := range all {
		if v.Compared == 0 && i > 0 {
			all[i].State, all[i].Value = StateUnknown, "nothing was compared"
		}
	}
	return all
}

// of joins the verdicts of operations: the worst counts, and one without any comparison is not known.
func (f *found) of(operations []mapping.Operation) verdict.OperationVerdict {
	joined := verdict.OperationVerdict{Verdict: verdict.Pass}
	for _, operation := range operations {
		one := verdict.OperationVerdict{Verdict: verdict.Inconclusive}
		for _, each := range f.report.Operations {
			if each.Operation == operation {
				one = each
			}
		}
		joined.Compared, joined.Failed, joined.Unstable = joined.Compared+one.Compared, joined.Failed+one.Failed, joined.Unstable+one.Unstable
		if joined.Verdict == verdict.Pass || one.Verdict == verdict.Fail {
			joined.Verdict = one.Verdict
		}
	}
	return joined
}

// probe asks both trackers for what each caller with a name sees, and an anonymous one.
func (g *Gate) probe(ctx context.Context, status switchover.Status) []Precondition {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	trackers := precondition(needTrackers, true, "%s and %s respond", status.Old, status.New)
	keys := precondition(needKeys, true, "both trackers accept the keys of %d callers", len(g.Callers))
	names := append([]string{""}, slices.Sorted(maps.Keys(g.Callers))...)
	sides := []string{status.Old, status.New}
	errs := make([]error, len(sides)*len(names))
	var probes errgroup.Group
	probes.SetLimit(maxProbes)
	for i := range errs {
		probes.Go(func() error {
			errs[i] = g.Probe(ctx, sides[i%len(sides)], g.Callers[names[i/len(sides)]])
			return nil
		})
	}
	_ = probes.Wait()
	for i, err := range errs {
		tracker, name := sides[i%len(sides)], names[i/len(sides)]
		refusal, ok := errors.AsType[*mapping.Error](err)
		refused := ok && (refusal.FromTracker() && refusal.Status < http.StatusInternalServerError || refusal.Reason == upstream.ReasonNoMappedKey)
		switch {
		case err == nil, name == "" && refused:
		case name == "":
			trackers = precondition(needTrackers, false, "%s gives no valid response: %v", tracker, err)
		case refused && refusal.Reason == upstream.ReasonNoMappedKey:
			keys = precondition(needKeys, false, "%s has no key at %s", name, tracker)
		case refused:
			keys = precondition(needKeys, false, "%s refuses the key of %s with code %d", tracker, name, refusal.Code)
		case keys.State == StateHolds:
			keys = Precondition{Name: needKeys, State: StateUnknown, Value: fmt.Sprintf("the key of %s cannot be tried at %s", name, tracker)}
		}
	}
	return []Precondition{trackers, keys}
}
