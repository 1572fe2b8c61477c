package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"portico/mapping"
	"portico/proxy/admin"
	"portico/proxy/admin/view"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// verdictView is a verdict in short, for scripts and for tools of progressive delivery.
type verdictView struct {
	Verdict verdict.Verdict `json:"verdict"`
	// ExitCode is 0 for PASS, 1 for FAIL, 2 for INCONCLUSIVE; Passed is 1 or 0, for tools that compare numbers.
	ExitCode int       `json:"exit_code"`
	Passed   int       `json:"passed"`
	At       time.Time `json:"at"`
	// Reason and Next are sentences for people.
	Reason string `json:"reason"`
	Next   string `json:"next"`
	// Rate, UpperBound and Target are shares from 0 to 1.
	Compared   int64   `json:"compared"`
	Confirmed  int64   `json:"confirmed"`
	Rate       float64 `json:"rate"`
	UpperBound float64 `json:"upper_bound"`
	Target     float64 `json:"target"`
	Needed     int64   `json:"needed"`
	// OpenFindings is the number of findings that are neither accepted nor fixed.
	OpenFindings int                                   `json:"open_findings"`
	Operations   map[mapping.Operation]verdict.Verdict `json:"operations"`
}

func viewVerdict(report verdict.Report) verdictView {
	view := verdictView{
		Verdict: report.Verdict, ExitCode: report.Verdict.ExitCode(), At: report.At,
		Compared: report.Overall.Compared, Confirmed: report.Overall.Confirmed, Rate: report.Overall.Rate,
		UpperBound: report.Overall.UpperBound, Target: report.Target, Needed: report.Overall.Needed,
		Reason: reasonOf(report), Next: nextOf(report), OpenFindings: len(openFindings(report)), Operations: map[mapping.Operation]verdict.Verdict{},
	}
	for _, operation := range report.Operations {
		view.Operations[operation.Operation] = operation.Verdict
	}
	if view.Verdict == verdict.Pass {
		view.Passed = 1
	}
	return view
}

// gate responds to a tool that wants to go on only after a PASS: by the status alone, with the reason beside it.
func gate(w http.ResponseWriter, report verdict.Report) error {
	status := map[verdict.Verdict]int{verdict.Pass: http.StatusOK, verdict.Fail: http.StatusPreconditionFailed}[report.Verdict]
	admin.WriteJSON(w, cmp.Or(status, http.StatusServiceUnavailable), viewVerdict(report))
	return nil
}

// openFindings are those that count, the most frequent first.
func openFindings(report verdict.Report) []state.Finding {
	return slices.DeleteFunc(slices.Clone(report.Findings), func(f state.Finding) bool { return f.Status != state.StatusOpen })
}

// reasonOf says in one sentence why the verdict is what it is.
func reasonOf(report verdict.Report) string {
	overall, open := report.Overall, openFindings(report)
	compared := plural(overall.Compared, "comparison", "comparisons")
	unreliable := slices.ContainsFunc(append(slices.Clone(report.Operations), overall), func(v verdict.OperationVerdict) bool {
		return v.TooOftenPrevented(report.Target)
	})
	switch {
	case report.Verdict == verdict.Pass:
		return fmt.Sprintf("%s, and at 95 %% confidence fewer than %s of the responses differ: the target is %s.", compared, view.Share(overall.UpperBound), view.Share(report.Target))
	case overall.Confirmed > 0 && overall.Rate > report.Target:
		return fmt.Sprintf("%s of %s differ (%s) for %s; %s would be allowed.", view.Count(overall.Confirmed), compared, view.Share(overall.Rate),
			plural(int64(len(open)), "open finding", "open findings"), view.Share(report.Target))
	case overall.Compared == 0 && len(open) == 0:
		return "Nothing has been compared yet."
	case report.Verdict == verdict.Inconclusive && len(open) == 0 && !unreliable:
		return fmt.Sprintf("Nothing that counts differs in %s, but that is not enough to be sure that fewer than %s do%s.", compared, view.Share(report.Target), undecided(report))
	case len(overall.Reasons) > 0:
		text := strings.Join(overall.Reasons, "; ")
		return strings.ToUpper(text[:1]) + text[1:] + "."
	default:
		return fmt.Sprintf("%s in %s to judge.", plural(int64(len(open)), "open finding", "open findings"), compared)
	}
}

// undecided names the operations that still need comparisons, unless all do.
func undecided(report verdict.Report) string {
	var names []string
	for _, operation := range report.Operations {
		if operation.Verdict == verdict.Inconclusive {
			names = append(names, string(operation.Operation))
		}
	}
	if len(names) == 0 || len(names) == len(report.Operations) {
		return ""
	}
	return " in " + strings.Join(names, " and ")
}

// nextOf says what to do about it.
func nextOf(report verdict.Report) string {
	switch {
	case report.Verdict == verdict.Pass:
		return "The candidate may take over: move the reads of one product first, and keep comparing."
	case len(openFindings(report)) > 0:
		return "Begin with the most frequent finding: fix the candidate and mark it as fixed, or accept it with a reason."
	case report.Overall.Compared == 0 && len(report.Dropped) > 0:
		return "Comparisons are being dropped: see the reasons below."
	case report.Overall.Compared == 0:
		return "Send reads through Portico, and see that a rule compares them and that the sampling is not 0."
	default:
		return waiting(report)
	}
}

// waiting says how much longer to compare.
func waiting(report verdict.Report) string {
	more := report.Overall.Needed
	text := fmt.Sprintf("Keep the traffic going: %s without a difference will do.", plural(more, "more comparison", "more comparisons"))
	if rate := recentRate(report); rate > 0 && more > 0 {
		text += fmt.Sprintf(" At the present rate that takes about %s.", view.Span(60*float64(more)/rate))
	}
	return text
}

// recentRate is the number of comparisons in a minute, over the last quarter of an hour or the last point of the time line.
func recentRate(report verdict.Report) float64 {
	var sum int64
	first := report.At
	for _, p := range slices.Backward(report.Timeline) {
		if report.At.Sub(first) > 15*time.Minute {
			break
		}
		sum, first = sum+p.Compared, p.At
	}
	return float64(sum) / max(1, report.At.Sub(first).Minutes())
}
