package pages_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"portico/proxy/admin"
	"portico/proxy/admin/pages"
	"portico/test/browser/fixtures"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
	"portico/upstream/switchover"
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
		Facade: "http://facade/", Trackers: map[string]string{"current": "http://current/bz/"},
	}), pages.SwitchoverPages(s.moving, fixtures.NewGate(s.moving), fixtures.Unpaired))
	return s
}

func serve(t *testing.T, all ...admin.Page) string {
	t.Helper()
	handler := admin.New(admin.Options{Pages: all})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
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
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
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
	base := serve(t, pages.SwitchoverPages(sickSwitchover{moving}, fixtures.NewGate(moving), nil))
	a := ask(t, "GET", base+"/switchover", "", "Accept", pageType)
	if a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	a.contains(t, "What was changed cannot be read now: the database is locked.")
}
