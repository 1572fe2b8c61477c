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
		Reason: reasonOf(report), Next: strings.Join(report.NextSteps(), "; "), OpenFindings: len(openFindings(report)), Operations: map[mapping.Operation]verdict.Verdict{},
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

// reasonOf says why the verdict is what it is.
func reasonOf(report verdict.Report) string {
	overall := report.Overall
	if len(overall.Reasons) > 0 {
		return strings.Join(overall.Reasons, "; ")
	}
	return fmt.Sprintf("%s, and at 95 %% confidence fewer than %s of the responses differ: the target is %s", plural(overall.Compared, "comparison", "comparisons"),
		view.Share(overall.UpperBound), view.Share(report.Target))
}
