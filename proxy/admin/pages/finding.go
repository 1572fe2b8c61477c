package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// findingPage is one finding with its samples.
type findingPage struct {
	Tab     string
	Done    string
	Finding state.Finding
	Report  verdict.Report
	Samples []sampleView
	Form    judgement
	// Today is the first day that the form takes.
	Today string
}

// sampleView is one comparison.
type sampleView struct {
	At time.Time
	canary.SampleText
	// Left and Right are both responses.
	Left, Right []line
	Commands    []command
}

// command is a command to paste into a shell.
type command struct{ ID, Title, Text string }

// suggestedDays is how long an acceptance holds, as the form suggests it.
const suggestedDays = 30

func (p *canaryPages) finding(w http.ResponseWriter, r *http.Request) error {
	if signature, asJSON := strings.CutSuffix(r.PathValue("signature"), ".json"); asJSON {
		value, err := p.findingJSON(r.Context(), signature)
		return writeJSON(w, value, err)
	}
	form := newForm(r)
	form.Until = time.Now().UTC().AddDate(0, 0, suggestedDays).Format(time.DateOnly)
	return p.showFinding(w, r, http.StatusOK, form)
}

func (p *canaryPages) showFinding(w http.ResponseWriter, r *http.Request, status int, form judgement) error {
	found, samples, err := p.findings.Finding(r.Context(), r.PathValue("signature"))
	if err != nil {
		return err
	}
	report, err := p.report(r)
	if err != nil {
		return err
	}
	page := findingPage{Tab: "/canary/findings", Done: doneMessage(r), Finding: found, Report: report, Form: form,
		Today: time.Now().UTC().Format(time.DateOnly)}
	for i, sample := range samples {
		view := sampleView{At: sample.At}
		if json.Unmarshal(sample.Text, &view.SampleText) == nil { // otherwise only the time is shown
			view.Left, view.Right = sideBySide(view.Answered, view.Other)
			view.Commands = p.commands(fmt.Sprintf("curl-%d", i+1), view.SampleText, report)
		}
		page.Samples = append(page.Samples, view)
	}
	return show(w, r, status, found.Class+" "+found.Path, "finding.html", page, !live)
}

func (p *canaryPages) findingJSON(ctx context.Context, signature string) (any, error) {
	found, samples, err := p.findings.Finding(ctx, signature)
	return map[string]any{"finding": found, "samples": append([]state.Sample{}, samples...)}, err
}

// judge accepts or reopens findings, or marks them as fixed: the one of the path, or those that the form selects.
func (p *canaryPages) judge(w http.ResponseWriter, r *http.Request) error {
	verb, signature := r.PathValue("judgement"), r.PathValue("signature")
	status, known := map[string]state.FindingStatus{
		"accept": state.StatusAccepted, "reopen": state.StatusOpen, "fixed": state.StatusFixed,
	}[verb]
	if !known {
		return &fault{Status: http.StatusNotFound, Message: "There is no judgement " + verb + "."}
	}
	c := change{
		apply: func(ctx context.Context, j judgement) error {
			if signature != "" {
				j.Signatures = []string{signature}
			}
			if len(j.Signatures) == 0 {
				return &fault{Status: http.StatusUnprocessableEntity, Message: "Nothing was changed: select at least one finding."}
			}
			for i, each := range j.Signatures {
				if err := p.canary.Judge(ctx, each, status, j.Actor, j.Reason, j.Ends); err != nil {
					return fmt.Errorf("finding %d of %d, those before it are judged: %w", i+1, len(j.Signatures), err)
				}
			}
			return nil
		},
		form: p.showFinding, done: "/canary/findings/" + url.PathEscape(signature) + "?done=" + verb,
		result: func(ctx context.Context) (any, error) { return p.findingJSON(ctx, signature) },
	}
	if signature == "" {
		kept, _ := choose(r, nil)
		c.form, c.done = p.showFindings, "/canary/findings?done="+verb+strings.Replace(kept.Query, "?", "&", 1)
		c.result = func(context.Context) (any, error) { return map[string]string{"done": verb}, nil }
	}
	return c.serve(w, r)
}

// The curl options that send an API key, which the reader has to set.
const (
	keyInHeader = `-H "X-BUGZILLA-API-KEY: $API_KEY" `
	keyInQuery  = `-G --data-urlencode "Bugzilla_api_key=$API_KEY" `
)

// commands returns those that repeat the request of a sample at both trackers, in the form that each of them understands. Commands
// with unknown addresses are left out. Only reads are offered.
func (p *canaryPages) commands(prefix string, sample canary.SampleText, report verdict.Report) []command {
	if sample.Method != http.MethodGet || !strings.HasPrefix(sample.Target, "/") {
		return nil
	}
	var all []command
	for _, name := range []string{report.Pair.Serving, report.Pair.Compared} {
		base, target, credential := p.options.Trackers[name], sample.Targets[name], keyInQuery
		switch {
		case base == "" || target == "":
			continue
		case sample.Caller == "anonymous":
			credential = ""
		case p.options.HeaderCredentials != nil && p.options.HeaderCredentials(name):
			credential = keyInHeader
		}
		all = append(all, command{fmt.Sprintf("%s-%d", prefix, len(all)+1), name, "curl -s " + credential + quoteShell(strings.TrimSuffix(base, "/")+target)})
	}
	return all
}

// quoteShell quotes a text for a shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
