package canary

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// change changes the reply of a tracker. n counts its requests from 1 on.
type change func(r *http.Request, n int64, status int, body []byte) (int, []byte)

// pair is Portico before two reference trackers, whose replies a test may change.
type pair struct {
	*process.Facade
	old, fresh *tracker.Server
	urls       [2]string
	file       string // the configuration
}

// pairOptions describe a pair. Zero values are two equal trackers.
type pairOptions struct {
	old, fresh       tracker.Options
	changeOld        change
	changeNew        change
	follows          bool     // the candidate gets the writes of the reference
	canary, settings string   // lines of the configuration
	env              []string // settings, as those of process.Serve
}

func newPair(t *testing.T, o pairOptions) *pair {
	t.Helper()
	o.old.Seed, o.fresh.Seed = tracker.SeedFixture, tracker.SeedFixture
	p := &pair{old: tracker.New(o.old)}
	if o.follows {
		o.fresh.Follows = p.old
	}
	p.fresh = tracker.New(o.fresh)
	p.urls = [2]string{serveChanged(t, p.old, o.changeOld), serveChanged(t, p.fresh, o.changeNew)}
	dir := t.TempDir()
	file := filepath.Join(dir, "portico.yaml")
	p.file = file
	lines := []string{
		"trackers:", `  old: {url: "` + p.urls[0] + `/"}`, `  fresh: {url: "` + p.urls[1] + `/"}`, "primary: old", "candidate: fresh",
		`state: "sqlite:` + filepath.Join(dir, "state.db") + `"`, "cache: {scope: off}", "log: {level: warn}",
		"canary:", "  per_second: 5000", "  noise: 0", o.canary, o.settings,
	}
	process.Must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	p.Facade = process.Serve(t, o.env, "serve", "--config", file)
	return p
}

// serveChanged serves a tracker with changed replies.
func serveChanged(t *testing.T, server *tracker.Server, with change) string {
	t.Helper()
	var asked atomic.Int64
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if with == nil || r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/version") {
			server.ServeHTTP(w, r)
			return
		}
		recorded := httptest.NewRecorder()
		server.ServeHTTP(recorded, r)
		status, body := with(r, asked.Add(1), recorded.Code, recorded.Body.Bytes())
		maps.Copy(w.Header(), recorded.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(func() { _ = server.Close(); listener.Close() })
	return listener.URL
}

// fixtureKey is the API key of a user of the fixture.
func fixtureKey(user string) string { return tracker.Keys(tracker.SeedFixture)[user+"@example.com"] }

// read makes a read as a client and gives the status.
func (p *pair) read(t *testing.T, target string, header ...string) int {
	t.Helper()
	return p.send(t, http.MethodGet, target, "", header...)
}

func (p *pair) send(t *testing.T, method, target, body string, header ...string) int {
	t.Helper()
	status, _ := call(t, method, p.Clients+target, body, header...)
	return status
}

// call makes a request with a JSON body, unless a header such as "Content-Type: text/plain" says otherwise.
func call(t *testing.T, method, url, body string, header ...string) (status int, text []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	process.Must(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, one := range header {
		if name, value, given := strings.Cut(one, ": "); given {
			request.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	process.Must(t, err)
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, text
}

// must makes a request that succeeds.
func must(t *testing.T, method, url, body string, header ...string) []byte {
	t.Helper()
	status, text := call(t, method, url, body, header...)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, url, status, text)
	}
	return text
}

func fetch(t *testing.T, url string, into any) {
	t.Helper()
	process.Must(t, json.Unmarshal(must(t, http.MethodGet, url, ""), into))
}

// reported is a report.
type reported struct{ verdict.Report }

// report waits until so many comparisons are over.
func (p *pair) report(t *testing.T, compared int64) reported {
	t.Helper()
	var r reported
	process.Eventually(t, fmt.Sprintf("%d comparisons", compared), func() bool {
		r = reported{}
		fetch(t, p.Operators+"/canary/report.json", &r.Report)
		over := r.Overall.Compared
		for _, n := range r.Dropped {
			over += n
		}
		return over >= compared
	})
	return r
}

// open gives the open findings at a path.
func (r reported) open(path string) []state.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f state.Finding) bool { return f.Status != state.StatusOpen || path != "" && f.Path != path })
}

// judge accepts, reopens or marks a finding as fixed.
func (p *pair) judge(t *testing.T, signature, word string) {
	t.Helper()
	must(t, http.MethodPost, p.Operators+"/canary/findings/"+signature+"/"+word, `{"actor":"ada","reason":"a test"}`)
}

// samples gives those of a finding.
func (p *pair) samples(t *testing.T, signature string) (list []canary.SampleText) {
	t.Helper()
	var found struct {
		Samples []struct {
			Sample canary.SampleText `json:"sample"`
		} `json:"samples"`
	}
	fetch(t, p.Operators+"/canary/findings/"+signature+".json", &found)
	for _, one := range found.Samples {
		list = append(list, one.Sample)
	}
	return list
}
