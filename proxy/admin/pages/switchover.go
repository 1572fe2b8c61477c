package pages

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"portico/proxy/admin"
	"portico/proxy/admin/pages/transition"
	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// Switchover is the switchover that the pages show and change. *switchover.Switchover implements it.
type Switchover interface {
	transition.Switchover
	// History returns earlier tables of rules, the newest first.
	History(ctx context.Context, limit int) ([]state.Revision, error)
	// Audit returns what operators have done, the newest first.
	Audit(ctx context.Context, limit int) ([]state.Record, error)
	// Kill sends everything to the old tracker. Errors: as of Change, and
	// *switchover.UndeliveredError of a kill that is active in this process only.
	Kill(ctx context.Context, actor, reason string) error
}

// switchoverPages serve everything below /switchover.
type switchoverPages struct {
	switchover Switchover
	gate       *transition.Gate
	unpaired   func() []idmap.Unpaired
}

// SwitchoverPages returns the switchover at /switchover: a page, JSON, and the changes that people may make. Rules move by the gate.
// unpaired lists the ids without a pair.
func SwitchoverPages(s Switchover, g *transition.Gate, unpaired func() []idmap.Unpaired) admin.Page {
	p := &switchoverPages{s, g, unpaired}
	return admin.Page{Path: "/switchover", Title: "Switchover", Handler: routes(map[string]handler{
		"GET /switchover": formPage(p.show).first,
		"GET /switchover/status.json": func(w http.ResponseWriter, r *http.Request) error {
			return writeJSON(w, s.Status(), nil)
		},
		"GET /switchover/history.json": func(w http.ResponseWriter, r *http.Request) error {
			revisions, err := s.History(r.Context(), maxHistory)
			audit, failed := s.Audit(r.Context(), maxAudit)
			return writeJSON(w, map[string]any{"history": viewHistory(revisions), "audit": audit}, cmp.Or(err, failed))
		},
		"GET /switchover/ids.json": func(w http.ResponseWriter, _ *http.Request) error {
			return writeJSON(w, map[string]any{"unpaired": unpaired()}, nil)
		},
		"GET /switchover/plan": formPage(p.plan).first,
		"GET /switchover/plan.json": func(w http.ResponseWriter, r *http.Request) error {
			plan, err := p.gate.Plan(r.Context(), r.FormValue("rule"), r.FormValue("back") != "")
			if err != nil {
				return &fault{Status: http.StatusUnprocessableEntity, Message: "There is no plan: " + err.Error() + "."}
			}
			return writeJSON(w, plan, nil)
		},
		"POST /switchover/rules":   p.changeRules,
		"POST /switchover/advance": p.move("advance"),
		"POST /switchover/reverse": p.move("reverse"),
		"POST /switchover/kill":    p.signed("kill", func(ctx context.Context, j judgement) error { return s.Kill(ctx, j.Actor, j.Reason) }),
		"POST /switchover/revive": p.signed("revive", func(ctx context.Context, j judgement) error {
			return g.Revive(ctx, j.Actor, j.Reason, j.Despite)
		}),
	})}
}

// maxHistory is the number of changes that are shown.
const maxHistory = 50

// maxAudit is the number of records of the audit trail that are shown.
const maxAudit = 1000

func (p *switchoverPages) show(w http.ResponseWriter, r *http.Request, status int, form judgement) error {
	ctx, cancel := context.WithTimeout(r.Context(), reportTimeout)
	defer cancel()
	page := switchoverPage{Done: doneMessage(r), Status: p.switchover.Status(), Form: form, Unpaired: p.unpaired()}
	revisions, err := p.switchover.History(ctx, maxHistory)
	if err != nil {
		page.NoHistory = "What was changed cannot be read now: " + err.Error() + "."
	}
	page.History = viewHistory(revisions)
	return show(w, r, status, "Switchover", "switchover.html", page, live)
}

// signed throws the kill switch or takes it back.
func (p *switchoverPages) signed(verb string, act func(context.Context, judgement) error) handler {
	return change{
		apply: func(ctx context.Context, j judgement) error { return p.changeFault(ctx, act(ctx, j)) },
		form:  p.show, done: "/switchover?done=" + verb,
		result: func(ctx context.Context) (any, error) { return p.switchover.Status(), nil },
	}.serve
}

// changeFault returns the response to a change that was not made.
func (p *switchoverPages) changeFault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	f := &fault{Status: http.StatusUnprocessableEntity, Message: "Nothing was changed: " + err.Error() + "."}
	var conflict *state.ConflictError
	var invalid *switchover.InvalidError
	var undelivered *switchover.UndeliveredError
	var unready *transition.UnreadyError
	var request *transition.RequestError
	var barrier *switchover.BarrierError
	switch {
	case errors.As(err, &unready):
		f.Status, f.Plan = http.StatusPreconditionFailed, &unready.Plan
	case errors.As(err, &request):
	case errors.As(err, &barrier):
		f.Status = http.StatusServiceUnavailable
	case errors.As(err, &conflict):
		f.Status, f.Present = http.StatusConflict, p.switchover.Status()
	case errors.As(err, &invalid):
		f.Rules = invalid.Problems
	case errors.As(err, &undelivered):
		f.Status, f.Message = http.StatusServiceUnavailable, "The kill switch is thrown: "+err.Error()+". Other processes learn of it as soon as possible."
	default:
		f.Status, f.Message = http.StatusServiceUnavailable, "The change cannot be stored now: "+err.Error()+"."
	}
	return f
}
