package pages

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/proxy/admin"
	"portico/proxy/admin/view"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// Canary is the comparison that the pages show and change. *canary.Canary implements it.
type Canary interface {
	// Report returns the results of the comparison.
	Report(ctx context.Context) (verdict.Report, error)
	// Sampling returns which calls are compared.
	Sampling() canary.Sampling
	// SetSampling changes at once which calls are compared.
	SetSampling(sampling canary.Sampling)
	// Judge sets the status of a finding; the zero time has no end. The error is one for which errors.Is gives state.ErrNotFound if
	// there is no such finding.
	Judge(ctx context.Context, signature string, status state.FindingStatus, actor, reason string, until time.Time) error
	// Reset discards all earlier results of the comparison.
	Reset(ctx context.Context, actor, reason string) error
}

// Findings returns one finding with its samples, or state.ErrNotFound. *state.Store implements it.
type Findings interface {
	Finding(ctx context.Context, signature string) (state.Finding, []state.Sample, error)
}

// CanaryOptions describe the surroundings of the comparison. The zero value is usable.
type CanaryOptions struct {
	// Trackers are the base URLs of the trackers by name, without credentials. What is not known is left out of the commands that
	// pages offer.
	Trackers map[string]string
	// HeaderCredentials reports whether a tracker takes an API key from a header; others take it from the query. nil means
	// never.
	HeaderCredentials func(tracker string) bool
}

// canaryPages serve everything below /canary.
type canaryPages struct {
	canary   Canary
	findings Findings
	options  CanaryOptions
}

// CanaryPages returns the comparison at /canary: pages, JSON, and the changes that people may make.
func CanaryPages(comparison Canary, findings Findings, options CanaryOptions) admin.Page {
	p := &canaryPages{comparison, findings, options}
	return admin.Page{Path: "/canary", Title: "Canary", Handler: routes(map[string]handler{
		"GET /canary":                      formPage(p.showOverview).first,
		"GET /canary/findings":             formPage(p.showFindings).first,
		"GET /canary/findings/{signature}": p.finding,
		"GET /canary/rules":                p.showRules,
		"GET /canary/report.json":          p.reported(func(w http.ResponseWriter, report verdict.Report) error { return writeJSON(w, report, nil) }),
		"GET /canary/verdict.json": p.reported(func(w http.ResponseWriter, report verdict.Report) error {
			return writeJSON(w, viewVerdict(report), nil)
		}),
		"GET /canary/findings.json": func(w http.ResponseWriter, r *http.Request) error {
			report, err := p.report(r)
			if err != nil {
				return err
			}
			chosen, err := choose(r, report.Findings)
			return writeJSON(w, map[string]any{"findings": chosen.Findings}, err)
		},
		"GET /canary/report.txt": p.reported(textOf("text/plain; charset=utf-8", verdict.Report.Text)),
		"GET /canary/report.xml": p.reported(textOf("application/xml; charset=utf-8", verdict.Report.JUnit)),
		"GET /canary/sampling.json": func(w http.ResponseWriter, _ *http.Request) error {
			return writeJSON(w, comparison.Sampling(), nil)
		},
		"POST /canary/judgements/{judgement}":           p.judge, // of the findings with each signature=… in the form, or with the signatures of the JSON
		"POST /canary/findings/{signature}/{judgement}": p.judge,
		"POST /canary/gate":                             p.reported(gate),
		"POST /canary/reset": change{
			apply: func(ctx context.Context, j judgement) error { return comparison.Reset(ctx, j.Actor, j.Reason) },
			form:  p.showOverview, done: "/canary?done=reset",
			result: func(context.Context) (any, error) { return map[string]string{"done": "reset"}, nil },
		}.serve,
		"POST /canary/sampling": p.setSampling,
	})}
}

// reportTimeout bounds reading the report from the store. It never waits for a tracker.
const reportTimeout = 20 * time.Second

func (p *canaryPages) report(r *http.Request) (verdict.Report, error) {
	ctx, cancel := context.WithTimeout(r.Context(), reportTimeout)
	defer cancel()
	return p.canary.Report(ctx)
}

// reported responds with the report in the form that write gives it.
func (p *canaryPages) reported(write func(http.ResponseWriter, verdict.Report) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		report, err := p.report(r)
		if err != nil {
			return err
		}
		return write(w, report)
	}
}

// textOf writes the report as text, completely or not at all.
func textOf(contentType string, write func(verdict.Report, io.Writer) error) func(http.ResponseWriter, verdict.Report) error {
	return func(w http.ResponseWriter, report verdict.Report) error {
		var text bytes.Buffer
		if write(report, &text) != nil {
			return &fault{Status: http.StatusInternalServerError, Message: "The report cannot be written."}
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(text.Bytes()) // a client that has gone needs no error
		return nil
	}
}

// reportPage is a page that shows a part of the report.
type reportPage struct {
	Tab    string
	Report verdict.Report
	// States has the number of rules in each state.
	States map[string]int
}

func (p *canaryPages) newPage(r *http.Request, tab string) (reportPage, error) {
	report, err := p.report(r)
	page := reportPage{tab, report, map[string]int{}}
	for _, rule := range report.Rules {
		page.States[string(rule.State)]++
	}
	return page, err
}

// overviewPage is the first page.
type overviewPage struct {
	reportPage
	Done     string
	Verdict  verdictView
	Timeline timeline
	// Open are the most frequent of the open findings.
	Open []state.Finding
	// Judged is the number of findings that are accepted or fixed.
	Judged int
	// Dropped has the reasons for which comparisons were not made.
	Dropped  []counted
	Sampling canary.Sampling
	Form     judgement
}

// maxOpen is the number of findings on the first page.
const maxOpen = 5

func (p *canaryPages) showOverview(w http.ResponseWriter, r *http.Request, status int, form judgement) error {
	common, err := p.newPage(r, "/canary")
	if err != nil {
		return err
	}
	report := common.Report
	open := openFindings(report)
	page := overviewPage{
		reportPage: common, Done: doneMessage(r), Verdict: viewVerdict(report), Timeline: drawTimeline(report),
		Open: open[:min(len(open), maxOpen)], Judged: len(report.Findings) - len(open), Sampling: p.canary.Sampling(), Form: form,
	}
	for reason, n := range report.Dropped {
		if n > 0 {
			page.Dropped = append(page.Dropped, counted{reason, int(n)})
		}
	}
	slices.SortFunc(page.Dropped, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return show(w, r, status, string(report.Verdict)+" · Canary", "overview.html", page, live)
}

// sampled says in words which calls are compared.
func sampled(sampling canary.Sampling) string {
	units := "requests"
	if sampling.Sticky {
		units = "callers"
	}
	parts := []string{view.Share(sampling.Default) + " of " + units}
	for _, operation := range slices.Sorted(maps.Keys(sampling.Operations)) {
		parts = append(parts, view.Share(sampling.Operations[operation])+" of "+string(operation))
	}
	return strings.Join(parts, ", ")
}

// percent writes a share as the form takes it.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', -1, 64) }

// setSampling takes a Sampling as JSON, or the default share in percent from the form. What is missing stays as it is.
func (p *canaryPages) setSampling(w http.ResponseWriter, r *http.Request) error {
	sampling := p.canary.Sampling()
	var notNumber error
	err := readRequest(w, r, &sampling, func(form url.Values) {
		var percent float64
		percent, notNumber = strconv.ParseFloat(strings.TrimSpace(form.Get("percent")), 64)
		sampling.Default = percent / 100
	})
	switch {
	case err != nil:
		return err
	case notNumber != nil:
		return &fault{Status: http.StatusUnprocessableEntity, Message: "The sampling was not changed: give the share in percent, a number from 0 to 100."}
	}
	if err := sampling.Validate(); err != nil {
		return &fault{Status: http.StatusUnprocessableEntity, Message: "The sampling was not changed: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "."}
	}
	p.canary.SetSampling(sampling)
	if fromBrowser(r) {
		http.Redirect(w, r, "/canary?done=sampling", http.StatusSeeOther)
		return nil
	}
	return writeJSON(w, p.canary.Sampling(), nil)
}

// findingsPage is the list of findings.
type findingsPage struct {
	reportPage
	choice
	// Listed are those of the chosen findings that the page lists, and Rest is the number of others.
	Listed []state.Finding
	Rest   int
	// Selected has the signatures of those that were selected in a form with problems.
	Selected map[string]bool
	Done     string
	Form     judgement
}

// maxListed is the number of findings that the page lists; /canary/findings.json has all.
const maxListed = 500

func (p *canaryPages) showFindings(w http.ResponseWriter, r *http.Request, status int, form judgement) error {
	common, err := p.newPage(r, "/canary/findings")
	if err != nil {
		return err
	}
	chosen, err := choose(r, common.Report.Findings)
	if err != nil {
		return err
	}
	page := findingsPage{reportPage: common, choice: chosen, Selected: map[string]bool{}, Done: doneMessage(r), Form: form}
	page.Listed = page.Findings[:min(len(page.Findings), maxListed)]
	page.Rest = len(page.Findings) - len(page.Listed)
	for _, signature := range form.Signatures {
		page.Selected[signature] = true
	}
	// It has a form, so it does not load itself again.
	return show(w, r, status, "Findings · Canary", "findings.html", page, !live)
}

// showRules lists the equivalence rules.
func (p *canaryPages) showRules(w http.ResponseWriter, r *http.Request) error {
	page, err := p.newPage(r, "/canary/rules")
	if err != nil {
		return err
	}
	return show(w, r, http.StatusOK, "Rules · Canary", "rules.html", page, live)
}
