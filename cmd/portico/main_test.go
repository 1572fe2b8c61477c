package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"go.yaml.in/yaml/v3"

	"portico/cache"
	"portico/cmd/portico/config"
	"portico/test/process"
	"portico/test/tracker"
)

// portico runs the program in process.
func portico(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), environment{stdout: &out, stderr: &errs, environ: environ}, args)
	return code, out.String(), errs.String()
}

// wants runs the program and looks at its exit code and output.
func wants(t *testing.T, environ []string, want int, text string, args ...string) {
	t.Helper()
	code, stdout, stderr := portico(t, environ, args...)
	if output := stdout + stderr; code != want || !strings.Contains(output, text) {
		t.Errorf("portico %s exits with %d, want %d and %q in\n%s", strings.Join(args, " "), code, want, text, output)
	}
}

var must = process.Must

// stub serves a handler until the test ends and gives its URL.
func stub(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	return process.Listen(t, handler).String()
}

// unusedURL is a URL where nothing listens.
func unusedURL() string {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

// signed are the flags that say who changes something, and why.
func signed(args ...string) []string { return append(args, "--actor", "tester", "--reason", "a test") }

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"", exitUsage, "", "\n  portico [command]\n"},
		{"help", exitOK, "\n  portico [command]\n", ""},
		{"--help", exitOK, "\n  portico [command]\n", ""},
		{"help check", exitOK, "--config FILE", ""},
		{"check --help", exitOK, "--config FILE", ""},
		{"help help", exitOK, "\n  portico help [command]", ""},
		{"-h", exitOK, "\n  portico [command]\n", ""},
		{"canary", exitUsage, "", "\n  portico canary [command]\n"},
		{"canary verdit", exitUsage, "", `portico canary: there is no command "verdit"; did you mean "verdict"?`},
		{"serve --lisen 127.0.0.1:0", exitUsage, "", `did you mean "listen"?`},
		{"serve -lisen 127.0.0.1:0", exitUsage, "", `did you mean "listen"?`},
		{"chek", exitUsage, "", `there is no command "chek"; did you mean "check"?`},
		{"check --no-such-flag", exitUsage, "", "no-such-flag"},
		{"check --tracker", exitUsage, "", "flag needs an argument"},
		{"check --tracker=", exitFailed, "", "url: is missing"},
		{"check --tracker http://a/ more", exitUsage, "", `unexpected argument "more"`},
		{"check --tracker http://a/ --config f", exitUsage, "", "exclude each other"},
		{"demo --listen x", exitFailed, "", "listen for clients: listen tcp: address x: missing port in address"},
		{"check --print --probe --json --tracker http://a/", exitUsage, "", "one document each"},
		{"check --tracker nonsense", exitFailed, "", "--tracker: trackers.main.url: nonsense: must begin with"},
		{"tracker --listen nowhere --dialect bugzila", exitUsage, "", `unknown dialect "bugzila": known are bugzilla-5, bmo, harmony`},
		{"tracker --listen 127.0.0.1:999999", exitFailed, "", "portico tracker: listen for tracker: "},
		{"demo --admin-listen :9080", exitUsage, "", ":9080 is open to other machines"},
		{"demo more", exitUsage, "", `unexpected argument "more"`},
		{"version", exitOK, "portico ", ""},
		{"--version", exitOK, "portico ", ""},
		{"version 2", exitUsage, "", "unexpected argument"},
	} {
		code, stdout, stderr := portico(t, nil, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("portico %s: exit %d\nstdout: %s\nstderr: %s", tt.args, code, stdout, stderr)
		}
		if tt.stdout == "" && stdout != "" || tt.stderr == "" && stderr != "" {
			t.Errorf("portico %s: unexpected output\nstdout: %s\nstderr: %s", tt.args, stdout, stderr)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	var visit func(c *cobra.Command, words ...string)
	visit = func(c *cobra.Command, words ...string) {
		name := strings.Join(append([]string{"portico"}, words...), " ")
		if c.HasParent() && (c.Short == "" || strings.HasSuffix(c.Short, ".")) {
			t.Errorf("%s: %q", name, c.Short)
		}
		for _, args := range [][]string{append([]string{"help"}, words...), append(words, "--help"), append(words, "-h"), append(words, "-help")} {
			if code, stdout, stderr := portico(t, nil, args...); code != exitOK || stderr != "" || !strings.Contains(stdout, "\n  "+name) {
				t.Errorf("portico %q: exit %d\n%s%s", args, code, stdout, stderr)
			}
		}
		for _, subcommand := range c.Commands() {
			if subcommand.Name() != "help" {
				visit(subcommand, append(slices.Clone(words), subcommand.Name())...)
			}
		}
	}
	visit(commandLine(environment{}))
}

// TestDefaultAddresses: those of the flags are those of the configuration.
func TestDefaultAddresses(t *testing.T) {
	if cfg := config.Default(); cfg.Listen != defaultListen || cfg.Admin.Listen != defaultAdminListen {
		t.Errorf("the configuration has %s and %s", cfg.Listen, cfg.Admin.Listen)
	}
}

// TestCommandsAskTheListener: flags and arguments become one request. Flags may have one hyphen, and values stay what they are.
func TestCommandsAskTheListener(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker)
	for _, args := range [][]string{{"check", "-config", file, "-redis", "redis://127.0.0.1:6379/0"}, {"check", "-config=" + file, "-print"}, {"check", "--config", file, "--print=false"}} {
		wants(t, nil, exitOK, "http://tracker.example/", args...)
	}
	for args, want := range map[string]string{
		"cache show -product P -component C -json":     `GET /cache?component=C&product=P`,
		"cache purge --product=P":                      `POST /cache/purge?product=P`,
		"canary findings --caller c --path x --json":   `GET /canary/findings.json?caller=c&path=x`,
		"canary fixed a b --actor c --reason d --json": `POST /canary/judgements/fixed {"actor":"c","reason":"d","signatures":["a","b"],"until":""}`,
		"canary sampling -sticky -sample 0.5":          `POST /canary/sampling {"default":0.5,"sticky":true}`,
	} {
		asked := ""
		listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = strings.TrimSpace(r.Method + " " + r.URL.String() + " " + string(body))
			_, _ = w.Write([]byte("{}"))
		})
		code, stdout, stderr := portico(t, nil, append(strings.Fields(args), "--admin", listener)...)
		if code != exitOK || asked != want {
			t.Errorf("portico %s: exit %d, asked for %s\n%s%s", args, code, asked, stdout, stderr)
		}
	}
	for _, value := range []string{"-tracke", "--x", "-"} {
		if code, stdout, stderr := portico(t, nil, "explain", "POST", "/page", "--data", value); code != exitOK || !strings.HasSuffix(stdout, "("+strconv.Itoa(len(value))+" bytes)\n") {
			t.Errorf("--data %s: exit %d\n%s%s", value, code, stdout, stderr)
		}
	}
}

// TestShellCompletion: the shells' scripts are there, and they complete commands and flags.
func TestShellCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		wants(t, nil, exitOK, "portico", "completion", shell)
	}
	for _, c := range []struct{ word, want string }{{"ver", "verdict"}, {"--for", "--format"}} {
		wants(t, nil, exitOK, c.want, "__complete", "canary", c.word)
	}
}

func TestCheckPrintsProblemsAndExitsOne(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"lisen: :80\nlog: {level: loud}\n")
	code, stdout, stderr := portico(t, []string{"PORTICO_LISTN=:80"}, "check", "--config", file)
	want := file + `:2:1: unknown key "lisen"; did you mean "listen"?` + "\n" +
		file + `:3:14: log.level: "loud" is not one of debug, info, warn, error` + "\n" +
		`PORTICO_LISTN: no key has this name; did you mean "PORTICO_LISTEN"?` + "\n"
	if code != exitFailed || stdout != "" || stderr != want {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, format := range []string{"json", "yaml"} {
		var list []entry
		code, stdout, _ := portico(t, nil, "check", "--config", file, "--output", format)
		if err := yaml.Unmarshal([]byte(stdout), &list); code != exitFailed || err != nil || len(list) != 2 || list[0] != (entry{"problem", strings.SplitN(want, "\n", 2)[0]}) {
			t.Errorf("as %s: exit %d, %v\n%s", format, code, err, stdout)
		}
	}
	warned := writeFile(t, "w.yaml", withTracker+"admin: {listen: ':9080', token_env: TOKEN}\n")
	wants(t, []string{"TOKEN=sixteen bytes or more"}, exitOK, `"name": "problem"`, "check", "--config", warned, "--json")
}

func TestCheckFindsTheFileInTheEnvironment(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"admin: {listen: ':9080', token_env: TOKEN}\n")
	code, stdout, stderr := portico(t, []string{"PORTICO_CONFIG=" + file, "TOKEN=sixteen bytes or more"}, "check")
	if code != exitOK || !strings.Contains(stdout, "main: http://tracker.example/") || !strings.Contains(stderr, ":2:17: warning:") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestProbe(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/bugs/rest/version" {
				status, body = http.StatusNotFound, "asked for "+r.URL.Path
			}
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		handler http.Handler
		code    int
		want    string
	}{
		"tracker":    {answer(200, `{"version":"5.2+"}`), exitOK, "probe       tracker main: version 5.2+"},
		"web page":   {answer(200, "<html>"), exitFailed, "without a version in JSON: this is no tracker; check trackers.main.url\nThe configuration is good, but a probe failed.\n"},
		"other JSON": {answer(200, "{}"), exitFailed, "FAILED: HTTP 200 without a version"},
		"https":      {answer(500, "<html>"), exitFailed, "FAILED: HTTP 500: the tracker fails; if its own address is an https one, set trackers.main.host: https://HOST\n"},
		"escapes":    {answer(200, `{"version":"5\u001b[2J"}`), exitFailed, "FAILED: an invalid version"},
		"long":       {answer(200, `{"version":"`+strings.Repeat("5", 1000)+`"}`), exitFailed, "FAILED: an invalid version"},
		"elsewhere":  {http.RedirectHandler("https://u:p@else.example/", http.StatusFound), exitFailed, "redirects to https://else.example/: "},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, nil, tt.code, tt.want, "check", "--probe", "--tracker", stub(t, tt.handler.ServeHTTP)+"/bugs/")
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/rest.cgi/version", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"version":"5.0.4"}`)) })
	old := stub(t, mux.ServeHTTP) // without /rest, which serve finds
	wants(t, nil, exitOK, "tracker main: version 5.0.4", "check", "--probe", "--tracker", old)
	named := writeFile(t, "c.yaml", "trackers: {main: {url: '"+old+"', dialect: bugzilla-5}}\n") // for which it does not look there
	wants(t, nil, exitFailed, "set trackers.main.dialect to auto", "check", "--probe", "--config", named)
	for _, want := range []string{"FAILED: cannot reach the tracker at ", "sample: 1\n"} {
		wants(t, nil, exitFailed, want, "check", "--print", "--probe", "--tracker", unusedURL())
	}
}

func TestProbeOfRedis(t *testing.T) {
	tracker := stub(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"version":"5.2"}`)) })
	server := miniredis.RunT(t)
	server.RequireAuth("the password")
	at := "PORTICO_CACHE_REDIS=redis://" + server.Addr()
	for name, tt := range map[string]struct {
		environ []string
		code    int
		want    string
	}{
		"embedded":       {nil, exitOK, "main: version 5.2\n"},
		"right password": {[]string{at, "PORTICO_CACHE_REDIS_PASSWORD_ENV=SECRET", "SECRET=the password"}, exitOK, "redis: responds\n"},
		"no password":    {[]string{at}, exitFailed, "redis: FAILED: cannot use Redis: "},
		"nobody there":   {[]string{"PORTICO_CACHE_REDIS=redis://127.0.0.1:1"}, exitFailed, "redis: FAILED: cannot use Redis: connection refused; is it running? check cache.redis\n"},
		"not needed":     {[]string{"PORTICO_CACHE_REDIS=redis://127.0.0.1:1", "PORTICO_CACHE_SCOPE=off"}, exitOK, "main: version 5.2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := portico(t, tt.environ, "check", "--probe", "--tracker", tracker)
			_, probes, _ := strings.Cut(stdout, "pass through: ")
			if code != tt.code || !strings.Contains(probes, tt.want) || strings.Contains(probes, "redis") != strings.Contains(tt.want, "redis") {
				t.Errorf("exit %d\n%s%s", code, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "the password") {
				t.Errorf("the password is shown in\n%s%s", stdout, stderr)
			}
		})
	}
	if keys := server.Keys(); len(keys) > 0 {
		t.Errorf("the probe left %q in Redis", keys)
	}
}

// withTracker is the minimum of a configuration.
const withTracker = "trackers: {main: {url: 'http://tracker.example/'}}\n"

// withTwo is the minimum of a configuration of two trackers; an addition begins in line 4.
const withTwo = "trackers: {a: {url: 'http://a.example/'}, b: {url: 'http://b.example/'}}\nprimary: a\ncandidate: b\n"

// writeFile writes a file in a temporary directory and returns its path.
var writeFile = process.File

// texts renders problems without the directory of the file.
func texts(problems []config.Problem) []string {
	list := []string{}
	for _, p := range problems {
		origin, message, _ := strings.Cut(p.String(), ": ")
		list = append(list, filepath.Base(origin)+": "+message)
	}
	return list
}

// pemText encodes one block.
func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestTrackerBehindTLSWithOwnCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"version":"5.2, seen ` + r.TLS.PeerCertificates[0].Subject.CommonName + `"}`))
	}))
	cert, key := process.KeyPair(t)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := writeFile(t, "ca.pem", pemText("CERTIFICATE", server.Certificate().Raw))

	environ := []string{
		"PORTICO_TRACKERS_MAIN_CA_FILE=" + ca,
		"PORTICO_TRACKERS_MAIN_CERT_FILE=" + cert,
		"PORTICO_TRACKERS_MAIN_KEY_FILE=" + key,
	}
	wants(t, environ, exitOK, "version 5.2, seen portico", "check", "--probe", "--tracker", server.URL)
	wants(t, environ[1:], exitFailed, "certificate", "check", "--probe", "--tracker", server.URL)
}

// TestConfigCommandsPrint: example is the file of the project, schema is JSON that knows its keys, and print is what check --print shows.
func TestConfigCommandsPrint(t *testing.T) {
	file, err := os.ReadFile("../../config.example.yaml")
	must(t, err)
	if code, stdout, stderr := portico(t, nil, "config", "example"); code != exitOK || stdout != string(file) || stderr != "" {
		t.Errorf("example: exit %d, %d bytes, want %d\n%s", code, len(stdout), len(file), stderr)
	}
	code, stdout, _ := portico(t, nil, "config", "schema")
	var schema struct {
		Properties map[string]struct{ Default any }
	}
	if err := json.Unmarshal([]byte(stdout), &schema); code != exitOK || err != nil || schema.Properties["responses"].Default != "tracker" {
		t.Errorf("schema: exit %d, %v\n%.300s", code, err, stdout)
	}
	url := "http://tracker.example/"
	environ := []string{"PORTICO_CACHE_REDIS=redis://me:hunter2@redis.example/", "PORTICO_LOG_LEVEL=warn"}
	code, stdout, _ = portico(t, environ, "config", "print", "--tracker", url)
	_, checked, _ := portico(t, environ, "check", "--print", "--tracker", url)
	if code != exitOK || stdout != checked || !strings.Contains(stdout, "level: warn # PORTICO_LOG_LEVEL") || strings.Contains(stdout, "hunter2") {
		t.Errorf("print: exit %d\n%s", code, stdout)
	}
	times := writeFile(t, "times.yaml", withTwo+"canary: {equivalences: [{name: n, type: idmap, path: '$.bug[*].id', table: {17: 42}, owner: me, reason: r, expires: 2999-01-01}]}\n")
	code, stdout, _ = portico(t, nil, "config", "print", "--config", times, "--output", "json")
	if _, again, _ := portico(t, nil, "config", "print", "--config", writeFile(t, "again.yaml", stdout), "--json"); code != exitOK || stdout != again || !strings.Contains(stdout, `"17": 42`) {
		t.Errorf("print as JSON: exit %d\n%s\nand, when that is read:\n%s", code, stdout, again)
	}
	wants(t, nil, exitFailed, "lisen", "config", "print", "--config", writeFile(t, "c.yaml", "lisen: x\n"))
	wants(t, nil, exitUsage, `did you mean "example"?`, "config", "exampel")
}

// TestFormats: every command that prints data does so as JSON for --json, --format json and --output json alike, prints the same as
// YAML, prints something else without them, and refuses flags that contradict each other.
func TestFormats(t *testing.T) {
	t.Parallel()
	asked := ""
	listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
		asked += r.Method + " " + r.URL.String() + "\n"
		if r.URL.Path == "/rest/version" {
			_, _ = w.Write([]byte(`{"version":"5.2"}`))
			return
		}
		_, _ = w.Write([]byte(`{"verdict":"PASS","version":1,"old":"a","new":"b","items":[],"history":[],"finding":{"note":"yes\/\ud83d\ude00"}}` + "\n"))
	})
	rules := writeFile(t, "rules.yaml", "rules: [{name: x}]\n")
	admin, signed, tracker := " --admin "+listener, " --actor me --reason r", " --tracker "+listener
	for command, options := range map[string]string{
		"cache show K": admin, "cache show --product P": admin, "cache purge": admin, "health": admin, "version": "",
		"canary report": admin, "canary findings --class type": admin, "canary verdict": admin, "canary show S": admin, "canary sampling": admin,
		"canary accept S": admin + signed, "canary reopen S": admin + signed, "canary fixed S": admin + signed, "canary reset": admin + signed,
		"migrate status": admin, "migrate history": admin, "migrate plan " + rules: admin, "migrate apply " + rules + " --version 1": admin + signed,
		"migrate kill": admin + signed, "migrate revive": admin + signed, "check": tracker, "check --probe": tracker, "check --print": tracker,
		"config print": tracker, "config example": "", "config schema": "", "explain GET /rest/version": "",
	} {
		results := map[string]string{}
		for _, flags := range []string{"--json", "--format json", "--format=json --json", "--output json --json", "--output yaml", "--output text", "--json=false", ""} {
			code, stdout, stderr := portico(t, nil, strings.Fields(command+options+" "+flags)...)
			if code != exitOK || stderr != "" && !strings.HasPrefix(stderr, "warning: ") {
				t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
			}
			results[flags] = stdout
			var value, same any
			switch {
			case strings.Contains(flags, "json") && flags != "--json=false":
				if !json.Valid([]byte(stdout)) || len(results["--json"]) != len(stdout) { // explain makes up an id
					t.Errorf("%s %s prints %s", command, flags, stdout)
				}
			case flags == "--output yaml":
				if err := yaml.Unmarshal([]byte(stdout), &value); err != nil || strings.HasPrefix(stdout, "{") {
					t.Errorf("%s as YAML: %v\n%s", command, err, stdout)
				}
				_ = json.Unmarshal([]byte(results["--json"]), &same)
				a, err := json.Marshal(value)
				b, failed := json.Marshal(same)                      // so that whole numbers look alike
				if err != nil || failed != nil || len(a) != len(b) { // explain makes up an id
					t.Errorf("%s as YAML has %s, and as JSON %s", command, a, b)
				}
			case command != "canary report" && command != "config schema": // which are JSON
				if json.Valid([]byte(stdout)) {
					t.Errorf("%s %s prints JSON: %s", command, flags, stdout)
				}
			}
		}
	}
	for path, n := range map[string]int{"GET /canary/report.json\n": 8, "GET /canary/report.txt\n": 3, "GET /canary/verdict.json\n": 5, "POST /cache/purge\n": 8} {
		if strings.Count(asked, path) != n {
			t.Errorf("%q was asked %d times, want %d:\n%s", path, strings.Count(asked, path), n, asked)
		}
	}
	asked = ""
	for command, options := range map[string]string{
		"cache show K": admin, "cache purge": admin, "canary verdict": admin, "canary report": admin, "migrate status": admin, "health": admin,
		"migrate kill": admin + signed, "replay f --tracker http://t": "", "check --print": tracker, "config print": tracker, "version": "",
	} {
		for flags, want := range map[string]string{
			"--json --format text": "contradict", "--format text --json": "contradict", "--output yaml --json": "contradict",
			"--format xml": "unknown format", "--format junit --json": "",
		} {
			if code, stdout, stderr := portico(t, nil, strings.Fields(command+options+" "+flags)...); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
				t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
			}
		}
	}
	if asked != "" {
		t.Errorf("the listener was called by a wrong command line:\n%s", asked)
	}
}

// TestHealth: one line, and an exit code for each state.
func TestHealth(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
		base, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case path != "readyz" || base == "missing":
			http.NotFound(w, r)
		case base == "draining":
			http.Error(w, "starting or draining", http.StatusServiceUnavailable)
		case base == "tls":
			http.Error(w, "Client sent an HTTP request to an HTTPS server.", http.StatusBadRequest)
		case base == "page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>\n<title>Bugs</title>\n</html>\n")
		case base == "hung":
			<-hung
		}
	})
	defer close(hung)
	gone := unusedURL()
	for _, c := range []struct {
		admin          string
		code           int
		stdout, stderr string
	}{
		{listener + "/ready/", exitOK, "ready\n", ""},
		{listener + "/draining", exitFailed, "not ready: starting or draining\n", ""},
		{listener + "/missing", exitNotAsked, "", "says 404"},
		{listener + "/hung", exitNotAsked, "", "no response in time; is it running? use --admin\n"},
		{gone, exitNotAsked, "", "cannot reach Portico's admin listener at " + strings.TrimPrefix(gone, "http://") + ": connection refused; is it running? use --admin\n"},
		{listener + "/tls", exitNotAsked, "", "portico health: the admin listener says 400: Client sent an HTTP request to an HTTPS server.\n"},
		{strings.Replace(listener, "http", "https", 1), exitNotAsked, "", "server gave HTTP response to HTTPS client; use http:// in --admin\n"},
		{listener + "/page", exitNotAsked, "", "portico health: a web page with status 200 is at " + strings.TrimPrefix(listener, "http://") + ", which is not Portico's admin listener; use --admin\n"},
		{"http://no..name:1", exitNotAsked, "", "cannot reach Portico's admin listener at no..name:1: no such host; is it running? use --admin\n"},
		{"nowhere", exitNotAsked, "", "--admin: "},
	} {
		began := time.Now()
		code, stdout, stderr := portico(t, nil, "health", "--admin", c.admin, "--timeout", "1s")
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || strings.Count(stdout+stderr, "\n") != 1 || time.Since(began) > 20*time.Second {
			t.Errorf("%s: exit %d\n%s%s", c.admin, code, stdout, stderr)
		}
	}
}

// TestUnreachable: no command shows the query or the password of an address that does not respond.
func TestUnreachable(t *testing.T) {
	gone := unusedURL()
	at := strings.TrimPrefix(gone, "http://")
	recording := writeFile(t, "a.jsonl", "{}\n")
	for command, want := range map[string]string{
		"cache show K --admin http://me:hunter2@" + at:                                "portico cache show: cannot reach Portico's admin listener at " + at + ": connection refused; is it running? use --admin\n",
		"canary verdict --admin http://me:hunter2@" + at + "/?token=hunter2":          "use --admin\n",
		"migrate status --admin https://" + at + "/?token=hunter2":                    "use --admin\n",
		"replay " + recording + " --tracker http://" + at + "/?api_key=hunter2":       "cannot reach the tracker at " + at + ": connection refused; is it running? check --tracker and --against\n",
		"check --probe --tracker http://" + at:                                        "FAILED: cannot reach the tracker at " + at + ": connection refused; is it running? check trackers.main.url\n",
		"explain GET /rest/version --tracker http://t --admin http://u:hunter2@" + at: "cannot reach Portico's admin listener at " + at + ": connection refused; is it running? use --admin\n",
	} {
		_, stdout, stderr := portico(t, nil, strings.Fields(command)...)
		if !strings.Contains(stdout+stderr, want) || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s:\n%s%s", command, stdout, stderr)
		}
	}
}

// TestCacheCommand looks into the caches of both trackers and purges them.
func TestCacheCommand(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "switchover: {rules: [{name: one, component: Accounts, reads: new}, {name: rest}]}\ncache: {ttl: 10m}\n")
	get(t, p.clients+webShop)
	get(t, p.clients+webShop+"/Accounts")
	code, text := p.command(t, "cache", "show", "--product", "WebShop")
	for _, want := range []string{"  main ", "  new "} {
		if code != exitOK || strings.Count(text, "fresh ") != 2 || strings.Count(text, "portico:1:") != 2 || !strings.Contains(text, want) {
			t.Errorf("show --product exits with %d and prints no %q\n%s", code, want, text)
		}
	}
	_, text = p.command(t, "cache", "show", "--json", "--product", "webshop", "--component", "accounts")
	var answer struct{ Items []cache.Item }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Items) != 1 || answer.Items[0].TTLSeconds < 120 {
		t.Fatalf("show --json prints %s (%v)", text, err)
	}
	p.commandWants(t, exitOK, "Accounts", "cache", "show", answer.Items[0].Key)
	p.commandWants(t, exitOK, "Purged", "cache", "purge", "--product", "WebShop")
	if _, text := p.command(t, "cache", "show", "--product", "WebShop"); strings.Contains(text, "fresh ") {
		t.Errorf("after a purge show prints\n%s", text)
	}
	for _, args := range [][]string{{}, {"show"}, {"show", "K", "--product", "P"}, {"wipe"}, {"purge", "K"}, {"purge", "--product", "P", "--component", "C"}, {"purge", "--product", ""}} {
		p.commandWants(t, exitUsage, "", append([]string{"cache"}, args...)...)
	}
}

var (
	updateReference = flag.Bool("update", false, "write docs/reference/cli.md")
	manual          = flag.String("man", "", "write the manual pages into this folder")
)

// referencePage writes a command and those below it as Markdown.
func referencePage(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	about := c.Long
	if about == "" {
		about = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	fmt.Fprintf(b, "%s\n\n```text\n%s\n", about, c.UseLine())
	if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n%s", flags)
	}
	b.WriteString("```\n")
	if c.HasInheritedFlags() {
		fmt.Fprintf(b, "\nIt takes the flags of `%s` too.\n", c.Parent().CommandPath())
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" {
			referencePage(b, below)
		}
	}
}

// completeCommandLine is the command line as users have it, with help and completion.
func completeCommandLine() *cobra.Command {
	root := commandLine(environment{})
	root.InitDefaultCompletionCmd("completion")
	root.DisableAutoGenTag = true
	return root
}

// TestReference: docs/reference/cli.md is what the commands say of themselves.
func TestReference(t *testing.T) {
	const page = "../../docs/reference/cli.md"
	var b strings.Builder
	b.WriteString("# Command line\n\nThis page lists all commands and their flags. It is generated from the program: " +
		"`go test ./cmd/portico -run TestReference -update` writes it.\n\n" +
		"A flag counts more than a variable of the environment (`PORTICO_…`), and that more than the configuration file.\n" +
		"`make man` writes the same as manual pages. `portico completion` prints completions for shells.\n" +
		"Verdicts are in colour on a terminal, unless the variable `NO_COLOR` is set.\n")
	referencePage(&b, completeCommandLine())
	if *updateReference {
		must(t, os.WriteFile(page, []byte(b.String()), 0o644))
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != b.String() {
		t.Errorf("%s is not what the commands say (%v); write it with: go test ./cmd/portico -run TestReference -update", page, err)
	}
}

// TestManual writes a manual page for each command.
func TestManual(t *testing.T) {
	folder := *manual
	if folder == "" {
		folder = t.TempDir()
	}
	must(t, doc.GenManTree(completeCommandLine(), &doc.GenManHeader{Section: "1", Source: "Portico", Manual: "Portico"}, folder))
	for page, want := range map[string]string{"portico.1": "portico - compatibility facade", "portico-canary-show.1": "portico canary show SIGNATURE", "portico-health.1": `\fB--timeout\fP=3s`} {
		if text, err := os.ReadFile(filepath.Join(folder, page)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q (%v):\n%s", page, want, err, text)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// startDemo runs portico demo on free ports and gives what it prints first.
func startDemo(t *testing.T) string {
	t.Helper()
	_, found := startProcess(t, `(?s)^(.*)\nStop it`, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	return found[0]
}

// shell runs a script and gives what it prints.
func shell(t *testing.T, script string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script).CombinedOutput()
	if err != nil {
		t.Errorf("%s\n%v\n%s", script, err, output)
	}
	return string(output)
}

// TestDemoTour runs the commands that portico demo prints, as they stand.
func TestDemoTour(t *testing.T) {
	t.Parallel()
	tour := startDemo(t)
	_, script, found := strings.Cut(tour, "/demo:\n\n")
	if !found {
		t.Fatalf("the demo prints no tour: %q", tour)
	}
	output := shell(t, script)
	for _, want := range []string{
		"Cache-Status: Portico; fwd=miss", "Cache-Status: Portico; hit", "404 Not Found", `"ranking-impact"`,
		`"flag_id":`, `"ids":[`, `"file_name":"hello.txt"`, `"code":1104`, `"tracker_version"`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the tour shows nothing of %s:\n%s", want, output)
		}
	}
}
