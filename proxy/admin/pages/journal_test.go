package pages_test

import (
	"strings"
	"testing"

	"portico/proxy/admin/pages"
	"portico/test/browser/fixtures"
	"portico/upstream/journal"
)

// TestJournalPages: what is parked is shown with its reason, and changed with an actor and a reason only.
func TestJournalPages(t *testing.T) {
	store, err := fixtures.NewJournal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	base := serve(t, pages.JournalPages(store))
	get := func(path string) answer { return ask(t, "GET", base+path, "", "Accept", pageType) }
	get("/journal").contains(t, "missing user, group, component or flag", "parked", "<dt>Parked</dt><dd>1<", "POST /rest/bug/{…}/{…}", "1,284")
	get("/journal/1").contains(t, "bug 35", "Try again", "Leave out for ever")
	get("/journal/2").contains(t, "Park</button>")
	list := decode[struct{ Status journal.Status }](t, ask(t, "GET", base+"/journal/entries.json", ""))
	if list.Status.Parked != 1 || len(list.Status.Losses) != 2 {
		t.Errorf("%+v", list)
	}
	post := func(path, form string, header ...string) answer {
		return ask(t, "POST", base+path, form, append([]string{"Content-Type", formType, "Accept", pageType}, header...)...)
	}
	for _, tt := range []struct {
		path, form string
		status     int
		says       string
	}{
		{"/journal/1/skip", "actor=ada", 422, "Say why"},
		{"/journal/1/park", "actor=ada&reason=x", 409, "entry 1 is parked; there is nothing to park"},
		{"/journal/2/retry", "actor=ada&reason=x", 409, "nothing to retry"},
		{"/journal/99/skip", "actor=ada&reason=x", 404, "no such entry"},
		{"/journal/x/skip", "actor=ada&reason=x", 404, "no such entry"},
	} {
		if a := post(tt.path, tt.form); a.status != tt.status || !strings.Contains(a.body, tt.says) {
			t.Errorf("%s %s: %d %s", tt.path, tt.form, a.status, a.body)
		}
	}
	if a := post("/journal/1/skip", "actor=ada&reason=x", "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("another site has an entry skipped: %d", a.status)
	}
	if a := post("/journal/1/skip", "actor=ada&reason=x"); a.status != 303 || a.location != "/journal?done=skip" {
		t.Errorf("%+v", a)
	}
	get("/journal").contains(t, "<dt>Parked</dt><dd>0<", "entry 1: attachment.create of bug 35")
	audit, err := store.Audit(t.Context(), 1)
	if err != nil || audit[0].Actor != "ada" || audit[0].Reason != "x" {
		t.Errorf("%+v, %v", audit, err)
	}
	_ = store.Close()
	if a := get("/journal"); a.status != 503 {
		t.Errorf("without the store: %d", a.status)
	}
}
