package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"portico/proxy/admin"
	"portico/upstream/canary"
)

// overviewView is what the first page shows.
type overviewView struct {
	Tabs     tabs
	Done     string
	Report   canary.Report
	Verdict  verdictView
	Timeline timeline
	Open     []canary.FindingView
	// Judged is the number of findings that are accepted or fixed.
	Judged     int
	Dropped    []drop
	DroppedAll int64
	Sampling   canary.Sampling
	Switchover bool
	// Unused and Expired count rules that do nothing.
	Unused, Expired int
	Form            judgement
}

// drop is a reason for which comparisons were not made.
type drop struct {
	Reason string
	Count  int64
}

// mostTop is how many findings the first page shows.
const mostTop = 5

func (p *canaryPages) overview(w http.ResponseWriter, r *http.Request) {
	report, ok := p.report(w, r)
	if !ok {
		return
	}
	p.showOverview(w, r, report, http.StatusOK, judgement{Actor: actorOf(r)})
}

func (p *canaryPages) showOverview(w http.ResponseWriter, r *http.Request, report canary.Report, status int, form judgement) {
	view := overviewView{
		Tabs: tabs{"/canary"}, Done: done(r), Report: report, Verdict: viewVerdict(report), Timeline: drawTimeline(report.Timeline, report.At),
		Open: openFindings(report), Dropped: dropsOf(report), Sampling: p.desk.Sampling(), Switchover: p.options.Switchover, Form: form,
	}
	view.Judged = len(report.Findings) - len(view.Open)
	view.Open = view.Open[:min(len(view.Open), mostTop)]
	for _, d := range view.Dropped {
		view.DroppedAll += d.Count
	}
	for _, rule := range report.Rules {
		switch rule.State {
		case canary.RuleUnused:
			view.Unused++
		case canary.RuleExpired:
			view.Expired++
		}
	}
	admin.Show(w, r, admin.Sheet{Status: status, Title: string(report.Verdict) + " · Canary", Body: canaryOverviewPage, Data: view, Live: true})
}

// dropsOf sorts the reasons, the most frequent first.
func dropsOf(report canary.Report) []drop {
	var all []drop
	for _, reason := range slices.Sorted(maps.Keys(report.Dropped)) {
		if n := report.Dropped[reason]; n > 0 {
			all = append(all, drop{reason, n})
		}
	}
	slices.SortStableFunc(all, func(a, b drop) int { return cmp.Compare(b.Count, a.Count) })
	return all
}

// SamplingText says in words which calls are compared.
func (v overviewView) SamplingText() string {
	who := "requests"
	if v.Sampling.Sticky {
		who = "callers"
	}
	parts := []string{share(v.Sampling.Default) + " of " + who}
	for _, operation := range slices.Sorted(maps.Keys(v.Sampling.Operations)) {
		parts = append(parts, share(v.Sampling.Operations[operation])+" of "+string(operation))
	}
	return strings.Join(parts, ", ")
}

// DefaultPercent is the sampling as the form shows it.
func (v overviewView) DefaultPercent() string {
	return strconv.FormatFloat(v.Sampling.Default*100, 'f', -1, 64)
}

// reset begins anew.
func (p *canaryPages) reset(w http.ResponseWriter, r *http.Request) {
	given, wrong := readJudgement(w, r, p.now())
	if wrong != nil {
		refuse(w, r, *wrong)
		return
	}
	if len(given.Problems) > 0 {
		p.refuseReset(w, r, given)
		return
	}
	if err := p.desk.Reset(r.Context(), given.Actor, given.Reason); err != nil {
		refuse(w, r, stateFault(err))
		return
	}
	if fromBrowser(r) {
		see(w, r, "/canary?done=reset")
		return
	}
	tell(w, http.StatusOK, map[string]string{"done": "reset"})
}

func (p *canaryPages) refuseReset(w http.ResponseWriter, r *http.Request, given judgement) {
	if !fromBrowser(r) {
		refuse(w, r, invalid(given))
		return
	}
	if report, ok := p.report(w, r); ok {
		p.showOverview(w, r, report, http.StatusUnprocessableEntity, given)
	}
}

// invalid is the answer to fields that cannot be taken.
func invalid(given judgement) fault {
	return fault{Status: http.StatusUnprocessableEntity, Error: "The change was not made.", Problems: given.Problems}
}

// setSampling takes a Sampling as JSON, or the share of all from the form.
func (p *canaryPages) setSampling(w http.ResponseWriter, r *http.Request) {
	sampling, wrong := p.readSampling(w, r)
	if wrong != nil {
		refuse(w, r, *wrong)
		return
	}
	if err := sampling.Validate(); err != nil {
		refuse(w, r, fault{Status: http.StatusUnprocessableEntity, Error: "The sampling was not changed: " + strings.ReplaceAll(err.Error(), "\n", "; ") + "."})
		return
	}
	p.desk.SetSampling(sampling)
	if fromBrowser(r) {
		see(w, r, "/canary?done=sampling")
		return
	}
	tell(w, http.StatusOK, p.desk.Sampling())
}

func (p *canaryPages) readSampling(w http.ResponseWriter, r *http.Request) (canary.Sampling, *fault) {
	if isJSON(r) {
		var sampling canary.Sampling
		wrong := readJSON(w, r, mostForm, &sampling)
		return sampling, wrong
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		return canary.Sampling{}, unreadable("form", err)
	}
	sampling := p.desk.Sampling()
	percent, err := strconv.ParseFloat(strings.TrimSpace(r.PostForm.Get("percent")), 64)
	if err != nil {
		return sampling, &fault{Status: http.StatusUnprocessableEntity, Error: "The sampling was not changed: give the share in percent, a number from 0 to 100."}
	}
	sampling.Default = percent / 100
	return sampling, nil
}
