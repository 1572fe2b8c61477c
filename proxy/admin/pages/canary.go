package pages

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"portico/proxy/admin"
	"portico/upstream/canary"
	"portico/upstream/state"
)

// CanaryDesk is what the pages ask of a comparison. *canary.Canary is one.
type CanaryDesk interface {
	// Report gives everything that was found out.
	Report(ctx context.Context) (canary.Report, error)
	// Sampling gives which calls are compared.
	Sampling() canary.Sampling
	// SetSampling changes at once which calls are compared.
	SetSampling(sampling canary.Sampling)
	// Accept, Reopen and Fixed judge a finding; an error for which errors.Is gives state.ErrNotFound says that there is none.
	// The zero time has no end.
	Accept(ctx context.Context, signature, actor, reason string, until time.Time) error
	// Reopen takes a judgement back.
	Reopen(ctx context.Context, signature, actor, reason string) error
	// Fixed says that a finding should not come again; if it does, it is open.
	Fixed(ctx context.Context, signature, actor, reason string) error
	// Reset begins anew: what was found before counts no more.
	Reset(ctx context.Context, actor, reason string) error
}

// FindingShelf gives one finding with its samples, or state.ErrNotFound. *state.Store is one.
type FindingShelf interface {
	Finding(ctx context.Context, signature string) (state.Finding, []state.Sample, error)
}

// CanaryOptions say what the pages know of the surroundings. The zero value is usable.
type CanaryOptions struct {
	// Facade is the base URL that clients use, and Trackers are those of the trackers by name; both without credentials.
	// What is not known is left out of the commands that pages offer.
	Facade   string
	Trackers map[string]string
	// Switchover says that there is a page where phases are seen.
	Switchover bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// canaryPages serve everything below /canary.
type canaryPages struct {
	desk    CanaryDesk
	shelf   FindingShelf
	options CanaryOptions
	now     func() time.Time
}

// CanaryPages is the comparison at /canary: pages, JSON, and the changes that people may make.
func CanaryPages(desk CanaryDesk, shelf FindingShelf, options CanaryOptions) admin.Page {
	p := &canaryPages{desk: desk, shelf: shelf, options: options, now: options.Now}
	if p.now == nil {
		p.now = time.Now
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /canary", p.overview)
	mux.HandleFunc("GET /canary/findings", p.findings)
	mux.HandleFunc("GET /canary/findings/{signature}", p.finding)
	mux.HandleFunc("GET /canary/rules", p.rules)
	mux.HandleFunc("GET /canary/report.json", p.reported(tellReport))
	mux.HandleFunc("GET /canary/report.txt", p.reported(writeText))
	mux.HandleFunc("GET /canary/report.xml", p.reported(writeJUnit))
	mux.HandleFunc("GET /canary/verdict.json", p.reported(tellVerdict))
	mux.HandleFunc("GET /canary/findings.json", p.reported(tellFindings))
	mux.HandleFunc("GET /canary/sampling.json", func(w http.ResponseWriter, _ *http.Request) { tell(w, http.StatusOK, desk.Sampling()) })
	mux.HandleFunc("POST /canary/findings/{signature}/{judgement}", p.judge)
	mux.HandleFunc("POST /canary/gate", p.reported(gate))
	mux.HandleFunc("POST /canary/reset", p.reset)
	mux.HandleFunc("POST /canary/sampling", p.setSampling)
	return admin.Page{Path: "/canary", Title: "Canary", Handler: admin.Offer(mux, nothingHere)}
}

// patience bounds what a page waits for. A report is read from the store, never from a tracker.
const patience = 20 * time.Second

// reported answers with the report, in the form that write gives it.
func (p *canaryPages) reported(write func(http.ResponseWriter, canary.Report)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if report, ok := p.report(w, r); ok {
			write(w, report)
		}
	}
}

// report asks for the report, and answers by itself where there is none.
func (p *canaryPages) report(w http.ResponseWriter, r *http.Request) (canary.Report, bool) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	report, err := p.desk.Report(ctx)
	if err != nil {
		refuse(w, r, stateFault(err))
		return report, false
	}
	return report, true
}

// stateFault is the answer to a failure of the store.
func stateFault(err error) fault {
	if errors.Is(err, state.ErrNotFound) {
		return fault{Status: http.StatusNotFound, Error: "There is no such finding. It may have gone when the comparison began anew."}
	}
	return fault{Status: http.StatusServiceUnavailable, Error: "What was found cannot be read or written now: " + err.Error() + "."}
}

// tabs are the pages of the comparison, with the one that is shown.
type tabs struct{ Current string }

// List gives the tabs in their order.
func (t tabs) List() []tab {
	all := []tab{{"Overview", "/canary", false}, {"Findings", "/canary/findings", false}, {"Rules", "/canary/rules", false}}
	for i := range all {
		all[i].Here = all[i].Path == t.Current
	}
	return all
}

type tab struct {
	Title, Path string
	Here        bool
}

// done is what a change is confirmed with, on the page that the browser is sent to.
func done(r *http.Request) string {
	return map[string]string{
		"accept":   "Accepted. The finding no longer counts against the candidate.",
		"reopen":   "Reopened. The finding counts again.",
		"fixed":    "Marked as fixed. The comparisons of its operation count anew. Should it come again, it is open.",
		"reset":    "Begun anew. What was found before counts no more.",
		"sampling": "Changed. It holds from now on.",
		"kill":     "The kill switch is thrown. Everything goes to the old tracker.",
		"revive":   "Revived. The rules count again.",
	}[r.URL.Query().Get("done")]
}

// actorOf suggests who somebody is: the name of a browser's login.
func actorOf(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return strings.TrimSpace(name)
}
