package pages

import (
	"context"
	"errors"
	"net/http"
	"time"

	"portico/proxy/admin"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// SwitchoverDesk is what the pages ask of a switchover. *switchover.Switchover is one.
type SwitchoverDesk interface {
	// Status gives the rules that count, with their hits.
	Status(ctx context.Context) switchover.Status
	// History gives what counted before, the newest first.
	History(ctx context.Context, limit int) ([]state.Revision, error)
	// Change replaces the table that has the given version. Errors: *switchover.ConflictError, *switchover.InvalidError,
	// *switchover.UnsignedError.
	Change(ctx context.Context, version int64, table switchover.Table, actor, reason string) error
	// Kill takes everything back to the old tracker, and Revive lets the rules count again. Errors: as of Change, and
	// *switchover.UndeliveredError of a kill that counts in this process only.
	Kill(ctx context.Context, actor, reason string) error
	// Revive ends what Kill began.
	Revive(ctx context.Context, actor, reason string) error
}

// switchoverPages serve everything below /switchover.
type switchoverPages struct {
	desk SwitchoverDesk
	now  func() time.Time
}

// SwitchoverPages is the switchover at /switchover: a page, JSON, and the changes that people may make.
func SwitchoverPages(desk SwitchoverDesk) admin.Page {
	p := &switchoverPages{desk: desk, now: time.Now}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /switchover", p.page)
	mux.HandleFunc("GET /switchover/status.json", p.status)
	mux.HandleFunc("GET /switchover/history.json", p.history)
	mux.HandleFunc("POST /switchover/rules", p.change)
	mux.HandleFunc("POST /switchover/kill", p.throw("kill", desk.Kill))
	mux.HandleFunc("POST /switchover/revive", p.throw("revive", desk.Revive))
	return admin.Page{Path: "/switchover", Title: "Switchover", Handler: admin.Offer(mux, nothingHere)}
}

func (p *switchoverPages) page(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, http.StatusOK, judgement{Actor: actorOf(r)})
}

func (p *switchoverPages) show(w http.ResponseWriter, r *http.Request, status int, form judgement) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	view := &switchoverView{Done: done(r), Form: form}
	view.fill(p.desk.Status(ctx))
	revisions, err := p.desk.History(ctx, mostHistory)
	if err != nil {
		view.NoHistory = "What was changed cannot be read now: " + err.Error() + "."
	}
	view.History = viewHistory(revisions)
	admin.Show(w, r, admin.Sheet{Status: status, Title: "Switchover", Body: switchoverPage, Data: view, Live: true})
}

func (p *switchoverPages) status(w http.ResponseWriter, r *http.Request) {
	tell(w, http.StatusOK, p.desk.Status(r.Context()))
}

// mostHistory is how many changes are shown.
const mostHistory = 50

func (p *switchoverPages) history(w http.ResponseWriter, r *http.Request) {
	revisions, err := p.desk.History(r.Context(), mostHistory)
	if err != nil {
		refuse(w, r, stateFault(err))
		return
	}
	tell(w, http.StatusOK, map[string]any{"history": viewHistory(revisions)})
}

// changeRequest is what a change of the rules says.
type changeRequest struct {
	// Version is the one that the change was made on.
	Version int64            `json:"version"`
	Actor   string           `json:"actor"`
	Reason  string           `json:"reason"`
	Table   switchover.Table `json:"table"`
}

// change replaces the rules, if nobody else has done so meanwhile.
func (p *switchoverPages) change(w http.ResponseWriter, r *http.Request) {
	var given changeRequest
	wrong := readJSON(w, r, mostTable, &given)
	if wrong != nil {
		refuse(w, r, *wrong)
		return
	}
	signed := judgement{Actor: given.Actor, Reason: given.Reason}
	if signed.check(p.now()); len(signed.Problems) > 0 {
		refuse(w, r, invalid(signed))
		return
	}
	if err := p.desk.Change(r.Context(), given.Version, given.Table, signed.Actor, signed.Reason); err != nil {
		refuse(w, r, p.changeFault(r.Context(), err))
		return
	}
	tell(w, http.StatusOK, p.desk.Status(r.Context()))
}

// throw answers the kill switch and its counterpart.
func (p *switchoverPages) throw(verb string, act func(ctx context.Context, actor, reason string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given, wrong := readJudgement(w, r, p.now())
		switch {
		case wrong == nil && len(given.Problems) > 0 && fromBrowser(r):
			p.show(w, r, http.StatusUnprocessableEntity, given)
			return
		case wrong == nil && len(given.Problems) > 0:
			refuse(w, r, invalid(given))
			return
		}
		if wrong == nil {
			if err := act(r.Context(), given.Actor, given.Reason); err != nil {
				failed := p.changeFault(r.Context(), err)
				wrong = &failed
			}
		}
		switch {
		case wrong != nil:
			refuse(w, r, *wrong)
		case fromBrowser(r):
			see(w, r, "/switchover?done="+verb)
		default:
			tell(w, http.StatusOK, p.desk.Status(r.Context()))
		}
	}
}

// changeFault is the answer to a change that was not made.
func (p *switchoverPages) changeFault(ctx context.Context, err error) fault {
	if conflict, ok := errors.AsType[*switchover.ConflictError](err); ok {
		return fault{Status: http.StatusConflict, Error: "Nothing was changed: " + conflict.Error() + ".", Present: p.desk.Status(ctx)}
	}
	if invalid, ok := errors.AsType[*switchover.InvalidError](err); ok {
		return fault{Status: http.StatusUnprocessableEntity, Error: "Nothing was changed: " + invalid.Error() + ".", Rules: invalid.Problems}
	}
	if unsigned, ok := errors.AsType[*switchover.UnsignedError](err); ok {
		return fault{Status: http.StatusUnprocessableEntity, Error: "Nothing was changed: " + unsigned.Error() + "."}
	}
	if only, ok := errors.AsType[*switchover.UndeliveredError](err); ok {
		return fault{Status: http.StatusServiceUnavailable, Error: "The kill switch is thrown: " + only.Error() + ". It is told as soon as it can be."}
	}
	return fault{Status: http.StatusServiceUnavailable, Error: "The change cannot be stored now: " + err.Error() + "."}
}
