package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
)

// Limits of BMO and Harmony: 16 MiB for a request, and the rate of one address (tracker-behaviour.md section 14).

// attachmentOf is the body of a create whose content takes up size bytes as base64.
func attachmentOf(size int) string {
	return `{"data":"` + strings.Repeat("YWFh", size/4) + `","file_name":"f","summary":"s","content_type":"text/plain"}`
}

// TestABodyThatTheTrackerDoesNotTakeIsRefused: beyond the 16 MiB of a tracker of the dialect bmo, and beyond what is configured.
func TestABodyThatTheTrackerDoesNotTakeIsRefused(t *testing.T) {
	bmo := tracker.Options{Dialect: tracker.DialectBMO, Params: tracker.Params{MaxAttachmentSize: 1 << 20}}
	for limit, p := range map[int]plan{
		16 << 20: {program: true, tracker: bmo}, 100 << 10: {program: true, env: []string{"TRACKERS_MAIN_MAX_BODY=100KiB"}},
	} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			h := open(t, p)
			h.post(t, "dev", "/rest/bug/7/attachment", attachmentOf(limit)).refused(t, 413, 200413).want(t, "@Portico-Error=too-large")
			h.post(t, "dev", "/rest/bug/7/comment", `{"comment":"`+strings.Repeat("x", limit)+`"}`).refused(t, 413, 200413)
			if done := h.writes(); len(done) != 0 {
				t.Errorf("the tracker executed %q", done)
			}
			h.post(t, "dev", "/rest/bug/7/attachment", attachmentOf(limit*15/16)).ok(t, 201)
		})
	}
}

// TestTheReferenceTrackerTakesNoLargeBody: those of BMO and of Harmony refuse one in their own ways, and store nothing.
func TestTheReferenceTrackerTakesNoLargeBody(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[string]string{tracker.DialectBMO: `413 "code":58`, tracker.DialectHarmony: `400 "code":32000`} {
		server := process.Reference(t, tracker.Options{Dialect: dialect, Params: tracker.Params{MaxAttachmentSize: 1 << 20}})
		direct := &client{base: process.Listen(t, server).String()}
		got := direct.post(t, "", "/rest/bug/7/attachment?api_key="+keys()["dev"], attachmentOf(16<<20))
		status, code, _ := strings.Cut(want, " ")
		if strconv.Itoa(got.status) != status || !strings.Contains(string(got.body), code) || len(server.Journal()) != 0 {
			t.Errorf("%s: %d %s", dialect, got.status, got.body)
		}
	}
}

// from asks as a client behind a trusted proxy.
func (f *facade) from(t *testing.T, address, user, path string) *reply {
	t.Helper()
	return f.do(t, ask{method: http.MethodGet, path: path, user: user, header: http.Header{"X-Forwarded-For": {address}}})
}

func TestAClientThatTheTrackerBlocksIsNotAskedFor(t *testing.T) {
	t.Parallel()
	tape := &recording{}
	server := process.Reference(t, tracker.Options{Dialect: tracker.DialectBMO, RateLimit: 3, Quirks: []tracker.Quirk{tracker.QuirkReverseProxy}})
	f := startFacade(t, process.Listen(t, tape.over(server)).String(), "TRUSTED_PROXIES=127.0.0.1/32", "CACHE_TTL=1s", "CACHE_STALE_WHILE_REVALIDATE=0s")
	const blocked, other = "192.0.2.1", "192.0.2.2"
	f.from(t, other, "", "/rest/flag_type/TestProduct").ok(t, 200)
	for range 3 {
		f.from(t, blocked, "", "/rest/bug/attachment/1?include_fields=id").ok(t, 200)
	}
	f.from(t, blocked, "", "/rest/bug/attachment/1").fails(t, 400, 32000)
	f.from(t, blocked, "", "/rest/bug/attachment/1").refused(t, 429, 200429)
	before := len(tape.all())
	for range 3 {
		for _, path := range []string{"/rest/bug/attachment/1", "/rest/bug/5/attachment", "/rest/bug/1", "/rest/flag_type/4242", "/index.cgi"} {
			got := f.from(t, blocked, "", path).refused(t, 429, 200429)
			if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || seconds < 3500 || seconds > 3700 {
				t.Errorf("%s: Retry-After %q, want about an hour", path, got.header.Get("Retry-After"))
			}
			if reason := got.header.Get("Portico-Error"); reason != "rate-limited" {
				t.Errorf("%s: Portico-Error %q", path, reason)
			}
		}
	}
	if more := tape.all()[before:]; len(more) > 0 {
		t.Errorf("the tracker was asked %d times more for a client that it blocks", len(more))
	}
	time.Sleep(1100 * time.Millisecond) // what is stored is not fresh any more
	f.from(t, blocked, "", "/rest/flag_type/TestProduct").ok(t, 200)
	if got := f.from(t, other, "", "/rest/flag_type/TestProduct").ok(t, 200).cacheStatus(); got != "fwd=stale" {
		t.Errorf("another client gets %q, want a fresh response", got)
	}
	for _, path := range []string{"/rest/bug/attachment/1", "/rest/flag_type/TestProduct", "/rest/flag_type/4242", "/rest/version"} {
		if got := f.from(t, other, "", path); got.status != 200 {
			t.Errorf("%s of another client: %d %s", path, got.status, got.body)
		}
	}
}

// With Retry-After the tracker decides how long, whatever its dialect. One caller is its address with its credential.
func TestATrackersRetryAfterIsPassedOnAndHeeded(t *testing.T) {
	t.Parallel()
	tape := &recording{}
	server := process.Reference(t, tracker.Options{})
	limited := keys()["dev"]
	base := process.Listen(t, tape.over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, limited) || r.Method != http.MethodGet {
			w.Header().Set("Retry-After", "600")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		server.ServeHTTP(w, r)
	})))
	f := startFacade(t, base.String(), "CACHE_SCOPE=off")
	for i := range 4 {
		got := f.get(t, "dev", "/rest/flag_type/TestProduct").refused(t, 429, 200429)
		if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || seconds < 500 || seconds > 600 || i == 0 && seconds != 600 {
			t.Errorf("try %d: Retry-After %q", i, got.header.Get("Retry-After"))
		}
	}
	f.put(t, "dev", "/rest/bug/attachment/5", `{"summary":"s"}`).refused(t, 429, 200429)
	f.get(t, "dev", "/rest/bug/1").refused(t, 429, 200429)
	if asked := tape.all(); len(asked) != 1 {
		t.Errorf("the tracker was asked %q", asked)
	}
	for _, user := range []string{"", "plain"} {
		f.get(t, user, "/rest/flag_type/TestProduct").ok(t, 200)
		f.get(t, user, "/rest/bug/1").ok(t, 200)
	}
}

func TestRulesThatSendFlagTypeWritesToATrackerWithoutThemAreWarnedOf(t *testing.T) {
	t.Parallel()
	const rules = `
  rules:
    - {name: types, operation: [flag_type.create], product: [TestProduct], reads: new, writes: new}
    - {name: files, operation: [attachment.create], reads: new, writes: new}
    - {name: rest, reads: new, writes: old}
`
	old := process.Listen(t, process.Reference(t, tracker.Options{}))
	bmo := process.Listen(t, process.Reference(t, tracker.Options{Dialect: tracker.DialectBMO}))
	config := func(dialect, rules string) string {
		return fmt.Sprintf("trackers: {main: {url: %q}, next: {url: %q, dialect: %s}}\nprimary: main\ncandidate: next\nstate: sqlite:%s\nswitchover:%s\n",
			old, bmo, dialect, filepath.Join(t.TempDir(), "state.db"), rules)
	}
	const warning = "rule types sends flag type writes to tracker next, which has none"
	wants := func(what, out string, want bool) {
		t.Helper()
		if strings.Contains(out, warning) != want || strings.Contains(out, "rule files sends") || strings.Contains(out, "rule rest sends") {
			t.Errorf("%s: %s", what, out)
		}
	}
	for _, dialect := range []string{"bmo", "auto", "bugzilla-5"} {
		file := process.File(t, "portico.yaml", config(dialect, rules))
		code, out := portico(t, "check", "--config", file)
		wants("check with dialect "+dialect, out, dialect == "bmo")
		if code != 0 {
			t.Errorf("exit %d: %s", code, out)
		}
		_, out = portico(t, "check", "--config", file, "--probe")
		wants("check --probe with dialect "+dialect, out, dialect != "bugzilla-5")
	}
	f := process.Serve(t, nil, "serve", "--config", process.File(t, "portico.yaml", config("auto", " {}")))
	plan := process.File(t, "portico.yaml", strings.ReplaceAll(strings.TrimPrefix(rules, "\n"), "\n  ", "\n")[2:])
	_, out := portico(t, "migrate", "plan", plan, "--admin", f.Operators) // before anything was compared
	wants("migrate plan", out, true)
	f = process.Serve(t, nil, "serve", "--config", process.File(t, "portico.yaml", config("auto", "\n  rules: [{name: types, reads: new, writes: old-compare}]\n")))
	_, out = portico(t, "migrate", "plan", "--admin", f.Operators) // whose next step sends the writes to the new tracker
	wants("the next step", out, true)
}

// TestFlagsOfTheTracker starts the program with the flags that BMO's configuration stands behind.
func TestFlagsOfTheTracker(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t), "--dialect", "bmo", "--urlbase", "http://bugs.example/", "--rate-limit", "1", "--quirk", "reverse-proxy")
	direct := &client{base: base}
	if moved := direct.get(t, "", "/rest/version"); moved.status != http.StatusFound || moved.header.Get("Location") != "http://bugs.example/" {
		t.Errorf("for another host: %d %v", moved.status, moved.header)
	}
	read := ask{path: "/rest/bug/attachment/1", header: http.Header{"Host": {"bugs.example"}, "X-Forwarded-For": {"10.0.0.1"}}}
	direct.do(t, read).ok(t, http.StatusOK)
	direct.do(t, read).fails(t, http.StatusBadRequest, 32000)
	read.header.Set("X-Forwarded-For", "10.0.0.2")
	direct.do(t, read).ok(t, http.StatusOK)
}
