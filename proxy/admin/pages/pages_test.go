package pages_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy/admin"
	"portico/proxy/admin/pages"
	"portico/test/browser/fixtures"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// The packages implement the interfaces of the pages.
var (
	_ pages.Canary     = (*canary.Canary)(nil)
	_ pages.Findings   = (*state.Store)(nil)
	_ pages.Switchover = (*switchover.Switchover)(nil)
)

// site is an admin listener with the pages of the comparison and of the switchover.
type site struct {
	t      *testing.T
	base   string
	canary *fixtures.Canary
	moving *fixtures.Switchover
}

func open(t *testing.T) *site {
	t.Helper()
	now := time.Now()
	s := &site{t: t, canary: fixtures.NewCanary(now), moving: fixtures.NewSwitchover(now)}
	s.base = serve(t, pages.CanaryPages(s.canary, s.canary, pages.CanaryOptions{
		Trackers: map[string]string{"current": "http://current/bz/"},
	}), pages.SwitchoverPages(s.moving, fixtures.NewGate(s.moving), fixtures.Unpaired))
	return s
}

func serve(t *testing.T, all ...admin.Page) string {
	t.Helper()
	handler := admin.New(admin.Options{Metrics: admin.NewMetrics(), Looked: func() {}, Pages: all})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is a response.
type answer struct {
	status   int
	kind     string
	location string
	takes    string
	body     string
}

// ask sends one request and follows nothing. header holds names and values.
func ask(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return answer{response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("Location"), response.Header.Get("Allow"), string(text)}
}

const (
	formType  = "application/x-www-form-urlencoded"
	jsonType  = "application/json"
	pageType  = "text/html,application/xhtml+xml"
	jsonKind  = "application/json; charset=utf-8"
	pageKind  = "text/html; charset=utf-8"
	signature = "5dc65d00287f8bab"
)

func (s *site) get(path string) answer {
	s.t.Helper()
	return ask(s.t, "GET", s.base+path, "", "Accept", pageType)
}

func (s *site) post(path, body, kind, accept string) answer {
	s.t.Helper()
	return ask(s.t, "POST", s.base+path, body, "Content-Type", kind, "Accept", accept)
}

// decode reads the JSON of an answer.
func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var value T
	if a.kind != jsonKind {
		t.Fatalf("the answer is %s: %s", a.kind, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return value
}

// contains checks that a page says all of it.
func (a answer) contains(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Errorf("%q is not in\n%s", part, a.body)
		}
	}
}

// sick is a comparison whose store cannot be reached.
type sick struct{ *fixtures.Canary }

var errGone = errors.New("the database is locked")

func (sick) Report(context.Context) (verdict.Report, error) { return verdict.Report{}, errGone }
func (sick) Judge(context.Context, string, state.FindingStatus, string, string, time.Time) error {
	return errGone
}

func TestStoreThatIsGone(t *testing.T) {
	comparison := sick{fixtures.NewCanary(time.Now())}
	base := serve(t, pages.CanaryPages(comparison, comparison, pages.CanaryOptions{}))
	for _, path := range []string{"/canary", "/canary/findings", "/canary/rules", "/canary/report.json", "/canary/verdict.json", "/canary/findings/" + signature} {
		a := ask(t, "GET", base+path, "", "Accept", pageType)
		want := pageKind
		if strings.HasSuffix(path, ".json") {
			want = jsonKind
		}
		back := map[string]string{"/canary": `<a href="/">Back`, "/canary/findings": `<a href="/canary">Back`}[path]
		if a.status != 503 || a.kind != want || !strings.Contains(a.body, "locked") || !strings.Contains(a.body, back) {
			t.Errorf("%s: %d %s %s", path, a.status, a.kind, a.body)
		}
	}
	if a := ask(t, "POST", base+"/canary/gate", ""); a.status != 503 || strings.Contains(a.body, "PASS") {
		t.Errorf("the gate: %d %s", a.status, a.body)
	}
	if a := ask(t, "POST", base+"/canary/findings/"+signature+"/accept", "actor=a&reason=b", "Content-Type", formType); a.status != 503 {
		t.Errorf("accept: %d %s", a.status, a.body)
	}
}

// sickSwitchover is a switchover whose history cannot be read.
type sickSwitchover struct{ *fixtures.Switchover }

func (sickSwitchover) History(context.Context, int) ([]state.Revision, error) { return nil, errGone }

func TestHistoryThatCannotBeRead(t *testing.T) {
	moving := fixtures.NewSwitchover(time.Now())
	base := serve(t, pages.SwitchoverPages(sickSwitchover{moving}, fixtures.NewGate(moving), (*idmap.Map)(nil).Unpaired))
	a := ask(t, "GET", base+"/switchover", "", "Accept", pageType)
	if a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	a.contains(t, "What was changed cannot be read now: the database is locked.")
}

// TestJournalPages: what is parked is shown with its reason, and changed with an actor and a reason only.
func TestJournalPages(t *testing.T) {
	store, err := fixtures.NewJournal(t.Context())
	must(t, err)
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
	if a := get("/journal"); strings.Contains(a.body, "the oldest 200") {
		t.Error("three entries are all of them")
	}
	many := make([]state.JournalEntry, 200)
	for i := range many {
		many[i] = state.JournalEntry{Lane: "bug " + strconv.Itoa(i), Operation: mapping.OpCreateAttachment}
	}
	_, err = store.BeginJournal(t.Context(), "test", time.Minute, many)
	if err != nil {
		t.Fatal(err)
	}
	get("/journal").contains(t, "the oldest 200")
	_ = store.Close()
	if a := get("/journal"); a.status != 503 || strings.Count(a.body, "closed") != 1 {
		t.Errorf("without the store, once: %d %s", a.status, a.body)
	}
}

func TestSwitchoverPage(t *testing.T) {
	s := open(t)
	a := s.get("/switchover")
	if a.status != 200 || a.kind != pageKind {
		t.Fatalf("%d %s", a.status, a.kind)
	}
	a.contains(t, "product WebShop", "10 % of the callers", "user agent mylyn*", `<li class="here" aria-current="step">new-compare</li>`, `<li class="passed">old</li>`,
		"90,412", "Ids without a pair", "attachment 4711", "webshop: new, reads new-compare, writes old-compare", "Monday’s release", "Send everything to current", "everything else")
}

// A step is offered where there is one: not ahead of new, nor back from old.
func TestOfferedSteps(t *testing.T) {
	s := open(t)
	offered := func() (ahead, back int) {
		page := s.get("/switchover").body
		return strings.Count(page, ">Next step<"), strings.Count(page, ">Step back<")
	}
	if ahead, back := offered(); ahead != 2 || back != 3 {
		t.Errorf("of three rules, %d can go ahead and %d back", ahead, back)
	}
	status := s.moving.Status()
	table := status.Table
	table.Rules[2].Reads = switchover.PhaseOld
	must(t, s.moving.Change(t.Context(), status.Version, table, "ada", "a test"))
	if ahead, back := offered(); ahead != 2 || back != 2 {
		t.Errorf("with one rule at old, %d can go ahead and %d back", ahead, back)
	}
}

func TestChangingTheRules(t *testing.T) {
	s := open(t)
	status := decode[switchover.Status](t, s.get("/switchover/status.json"))
	next := status.Table
	next.Rules = append([]switchover.Rule(nil), next.Rules...)
	next.Rules[0].Reads = switchover.PhaseNew
	change := func(version int64, table switchover.Table, actor, reason string) answer {
		text, err := json.Marshal(map[string]any{"version": version, "actor": actor, "reason": reason, "table": table})
		must(t, err)
		return s.post("/switchover/rules", string(text), jsonType, "*/*")
	}
	if a := change(status.Version, next, "ada", ""); a.status != 422 || !strings.Contains(a.body, `"field": "reason"`) {
		t.Errorf("unsigned: %+v", a)
	}
	if a := change(status.Version, switchover.Table{}, "ada", "x"); a.status != 422 || !strings.Contains(a.body, "must have no conditions") {
		t.Errorf("no rules: %+v", a)
	}
	if a := change(status.Version-1, next, "ada", "x"); a.status != 409 || !strings.Contains(a.body, `"present": {`) || !strings.Contains(a.body, "at version 2 by now") {
		t.Errorf("an old version: %+v", a)
	}
	if a := s.post("/switchover/rules", `{"version": 2, "tables": {}}`, jsonType, "*/*"); a.status != 400 {
		t.Errorf("an unknown member: %+v", a)
	}
	if after := s.moving.Status(); after.Version != status.Version {
		t.Fatalf("one of them was taken: %+v", after)
	}
	a := change(status.Version, next, "ada", "all reads")
	if after := decode[switchover.Status](t, a); a.status != 200 || after.Version != 3 || after.Rules[0].Rule.Reads != switchover.PhaseNew {
		t.Errorf("%+v", a)
	}
	s.get("/switchover").contains(t, "webshop: reads new-compare → new", "all reads")
	history := decode[struct {
		History []struct {
			Version int64
			Actor   string
			Changes []string
		}
	}](t, s.get("/switchover/history.json")).History
	if len(history) != 3 || history[0].Version != 3 || history[0].Actor != "ada" || len(history[0].Changes) != 1 {
		t.Errorf("%+v", history)
	}
}

func TestKillAndRevive(t *testing.T) {
	s := open(t)
	if a := s.post("/switchover/kill", "actor=ada", formType, pageType); a.status != 422 || !strings.Contains(a.body, `<details class="do" open>`) {
		t.Errorf("without a reason: %+v", a)
	}
	if s.moving.Status().Killed != nil {
		t.Fatal("it was taken")
	}
	a := s.post("/switchover/kill", "actor=ada&reason=flags+get+lost", formType, pageType)
	if a.status != 303 || a.location != "/switchover?done=kill" {
		t.Errorf("%+v", a)
	}
	s.get(a.location).contains(t, "everything goes to current", "flags get lost", "Revive the rules", "kill switch thrown")
	a = s.post("/switchover/revive", `{"actor": "ada", "reason": "mended"}`, jsonType, "*/*")
	if decode[switchover.Status](t, a); a.status != 200 || s.moving.Status().Killed != nil {
		t.Errorf("%+v", a)
	}
}

// What holds needs no override.
func TestThePageOfAPlan(t *testing.T) {
	page := open(t).get("/switchover/plan?rule=webshop")
	page.contains(t, "Next step", `<span class="chip pass">holds</span>`, "Confirm before you take the step: current sends no mail")
	if strings.Contains(page.body, `name="despite"`) {
		t.Errorf("what holds can be overridden: %s", page.body)
	}
}
