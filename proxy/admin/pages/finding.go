package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"portico/proxy/admin"
	"portico/upstream/canary"
	"portico/upstream/state"
)

// findingView is one finding with its samples.
type findingView struct {
	Tabs    tabs
	Done    string
	Finding canary.FindingView
	Pair    trackers
	Samples []sampleView
	Form    judgement
	// Today and Suggested are the first day that the form takes and the one that it begins with.
	Today string
}

// suggestedDays is how long an acceptance holds unless somebody says otherwise.
const suggestedDays = 30

func (p *canaryPages) finding(w http.ResponseWriter, r *http.Request) {
	signature, asJSON := strings.CutSuffix(r.PathValue("signature"), ".json")
	found, samples, err := p.shelf.Finding(r.Context(), signature)
	switch {
	case err != nil:
		refuse(w, r, stateFault(err))
	case asJSON:
		tell(w, http.StatusOK, jsonFinding(found, samples))
	default:
		form := judgement{Actor: actorOf(r), Until: p.now().UTC().AddDate(0, 0, suggestedDays).Format(time.DateOnly)}
		p.showFinding(w, r, found, samples, http.StatusOK, form)
	}
}

func (p *canaryPages) showFinding(w http.ResponseWriter, r *http.Request, found state.Finding, samples []state.Sample, status int, form judgement) {
	view := findingView{Tabs: tabs{"/canary/findings"}, Done: done(r), Finding: viewFinding(found), Form: form, Today: p.now().UTC().Format(time.DateOnly)}
	report, ok := p.report(w, r)
	if !ok {
		return
	}
	view.Pair = trackers(report.Pair)
	for i, sample := range samples {
		view.Samples = append(view.Samples, p.viewSample(fmt.Sprintf("curl-%d", i+1), found.Path, sample, view.Pair))
	}
	admin.Show(w, r, admin.Sheet{Status: status, Title: string(found.Class) + " " + found.Path, Body: findingPage, Data: view})
}

// viewFinding gives a stored finding as reports have it.
func viewFinding(f state.Finding) canary.FindingView {
	return canary.FindingView{
		Signature: f.Signature, Operation: f.Operation, Class: canary.Class(f.Class), Path: f.Path, Kind: cmp.Or(f.Kind, "reply"),
		Status: string(f.Status), Count: f.Count, First: f.First, Last: f.Last, Note: f.Note, Samples: f.Samples,
		Actor: f.Actor, Reason: f.Reason, Until: f.Until,
	}
}

// sampleJSON is a sample as scripts get it.
type sampleJSON struct {
	ID   int64           `json:"id"`
	At   time.Time       `json:"at"`
	Text json.RawMessage `json:"sample"`
}

func jsonFinding(found state.Finding, samples []state.Sample) any {
	list := []sampleJSON{}
	for _, s := range samples {
		list = append(list, sampleJSON{s.ID, s.At, s.Text})
	}
	return map[string]any{"finding": viewFinding(found), "samples": list}
}

// judge takes what somebody thinks of a finding.
func (p *canaryPages) judge(w http.ResponseWriter, r *http.Request) {
	verb, signature := r.PathValue("judgement"), r.PathValue("signature")
	act := map[string]func(context.Context, judgement) error{
		"accept": func(ctx context.Context, j judgement) error {
			return p.desk.Accept(ctx, signature, j.Actor, j.Reason, j.Ends)
		},
		"reopen": func(ctx context.Context, j judgement) error { return p.desk.Reopen(ctx, signature, j.Actor, j.Reason) },
		"fixed":  func(ctx context.Context, j judgement) error { return p.desk.Fixed(ctx, signature, j.Actor, j.Reason) },
	}[verb]
	if act == nil {
		nothingHere(w, r, http.StatusNotFound)
		return
	}
	given, wrong := readJudgement(w, r, p.now())
	if wrong == nil && len(given.Problems) > 0 {
		p.refuseJudgement(w, r, signature, given)
		return
	}
	if wrong == nil {
		if err := act(r.Context(), given); err != nil {
			failed := stateFault(err)
			wrong = &failed
		}
	}
	switch {
	case wrong != nil:
		refuse(w, r, *wrong)
	case fromBrowser(r):
		see(w, r, "/canary/findings/"+url.PathEscape(signature)+"?done="+verb)
	default:
		p.tellJudged(w, r, signature)
	}
}

// tellJudged answers a script with the finding as it is now.
func (p *canaryPages) tellJudged(w http.ResponseWriter, r *http.Request, signature string) {
	found, samples, err := p.shelf.Finding(r.Context(), signature)
	if err != nil {
		refuse(w, r, stateFault(err))
		return
	}
	tell(w, http.StatusOK, jsonFinding(found, samples))
}

// refuseJudgement shows the form again, with what is wrong.
func (p *canaryPages) refuseJudgement(w http.ResponseWriter, r *http.Request, signature string, given judgement) {
	if !fromBrowser(r) {
		refuse(w, r, invalid(given))
		return
	}
	found, samples, err := p.shelf.Finding(r.Context(), signature)
	if err != nil {
		refuse(w, r, stateFault(err))
		return
	}
	p.showFinding(w, r, found, samples, http.StatusUnprocessableEntity, given)
}
