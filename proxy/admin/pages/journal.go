package pages

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"portico/proxy/admin"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// journalPages serve everything below /journal.
type journalPages struct{ store *state.Store }

// maxEntries is the number of entries that are shown.
const maxEntries = 200

// journalPage is the data of the page.
type journalPage struct {
	Done    string               `json:"-"`
	Status  journal.Status       `json:"status"`
	Entries []state.JournalEntry `json:"entries"`
}

// entryPage is the data of the page of one entry.
type entryPage struct {
	Entry state.JournalEntry
	Form  judgement
}

// JournalPages returns the journal at /journal: pages, JSON, and the changes that people may make.
func JournalPages(store *state.Store) admin.Page {
	p := &journalPages{store}
	return admin.Page{Path: "/journal", Title: "Journal", Handler: routes(map[string]handler{
		"GET /journal": func(w http.ResponseWriter, r *http.Request) error {
			page, err := p.read(r)
			if err != nil {
				return err
			}
			return show(w, r, http.StatusOK, "Journal", "journal.html", page, live)
		},
		"GET /journal/entries.json": func(w http.ResponseWriter, r *http.Request) error {
			page, err := p.read(r)
			return writeJSON(w, page, err)
		},
		"GET /journal/{seq}":        formPage(p.entry).first,
		"POST /journal/{seq}/retry": p.change("retry", (*journal.Operator).Retry),
		"POST /journal/{seq}/skip":  p.change("skip", (*journal.Operator).Skip),
		"POST /journal/{seq}/park":  p.change("park", (*journal.Operator).Park),
	})}
}

func (p *journalPages) read(r *http.Request) (page journalPage, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), reportTimeout)
	defer cancel()
	page.Done = doneMessage(r)
	if page.Status, err = journal.StatusOf(ctx, p.store); err == nil {
		page.Entries, err = p.store.JournalOf(ctx, maxEntries, false)
	}
	return page, journalFault(err)
}

// entry shows the entry that the path names, with a form.
func (p *journalPages) entry(w http.ResponseWriter, r *http.Request, status int, form judgement) error {
	seq, _ := strconv.ParseInt(r.PathValue("seq"), 10, 64) // no entry has the number 0
	e, err := p.store.JournalEntry(r.Context(), seq)
	if err != nil {
		return journalFault(err)
	}
	return show(w, r, status, "Entry of the journal", "entry.html", entryPage{e, form}, !live)
}

// change changes the entry that the path names.
func (p *journalPages) change(verb string, do func(*journal.Operator, context.Context, int64) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		seq, _ := strconv.ParseInt(r.PathValue("seq"), 10, 64)
		return change{
			apply: func(ctx context.Context, j judgement) error {
				return journalFault(do(&journal.Operator{Store: p.store, Actor: j.Actor, Reason: j.Reason}, ctx, seq))
			},
			form: p.entry, done: "/journal?done=" + verb,
			result: func(ctx context.Context) (any, error) { return p.store.JournalEntry(ctx, seq) },
		}.serve(w, r)
	}
}

// journalFault returns the response to what the journal could not do.
func journalFault(err error) error {
	_, refused := errors.AsType[*journal.StatusError](err)
	switch {
	case err == nil:
		return nil
	case refused:
		return &fault{Status: http.StatusConflict, Message: "Nothing was changed: " + err.Error() + "."}
	case errors.Is(err, state.ErrNotFound):
		return &fault{Status: http.StatusNotFound, Message: "There is no such entry, or it has changed meanwhile."}
	}
	return &fault{Status: http.StatusServiceUnavailable, Message: "The journal cannot be read now: " + err.Error() + "."}
}
