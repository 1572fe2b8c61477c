package pages

import (
	"net/http"
	"net/url"
	"strconv"

	"portico/proxy/admin/pages/transition"
)

// planPage is the data of the page with the next step of one rule.
type planPage struct {
	Old, New string
	// Verb is the last segment of the path that makes the step: advance or reverse.
	Verb string
	Plan transition.Plan
	Form judgement
}

// plan shows the next step of the rule in the address, or the step back. The page is not kept up to date, since each one asks both trackers.
func (p *switchoverPages) plan(w http.ResponseWriter, r *http.Request, status int, form judgement) error {
	verb := "advance"
	if r.FormValue("back") != "" {
		verb = "reverse"
	}
	plan, err := p.gate.Plan(r.Context(), r.FormValue("rule"), verb == "reverse")
	if err != nil {
		return p.changeFault(r.Context(), err)
	}
	known := p.switchover.Status()
	return show(w, r, status, "Next step", "plan.html", planPage{known.Old, known.New, verb, plan, form}, !live)
}

// move takes a rule one step ahead or back.
func (p *switchoverPages) move(verb string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		m := transition.Move{Back: verb == "reverse"}
		err := readRequest(w, r, &m, func(form url.Values) {
			m.Rule, m.Actor, m.Reason, m.Despite = form.Get("rule"), form.Get("actor"), form.Get("reason"), form["despite"]
			m.Version, _ = strconv.ParseInt(form.Get("version"), 10, 64)
		})
		if err != nil {
			return err
		}
		return p.make(w, r, m, verb)
	}
}

// changeRules replaces the rules, unless they have been changed since the version that the request names.
func (p *switchoverPages) changeRules(w http.ResponseWriter, r *http.Request) error {
	var m transition.Move
	if err := readJSON(w, r, maxTable, &m); err != nil {
		return err
	}
	return p.make(w, r, m, "")
}

// make makes a change that a person has signed. The response to a dry run is the plan.
func (p *switchoverPages) make(w http.ResponseWriter, r *http.Request, m transition.Move, verb string) error {
	j := judgement{Actor: m.Actor, Reason: m.Reason}
	if j.check(); len(j.Problems) > 0 && !m.DryRun {
		return j.refuse(w, r, p.plan)
	}
	m.Actor, m.Reason = j.Actor, j.Reason
	plan, err := p.gate.Move(r.Context(), m)
	switch {
	case err != nil:
		return p.changeFault(r.Context(), err)
	case m.DryRun:
		return writeJSON(w, plan, nil)
	case fromBrowser(r):
		http.Redirect(w, r, "/switchover?done="+verb, http.StatusSeeOther)
		return nil
	}
	return writeJSON(w, p.switchover.Status(), nil)
}
