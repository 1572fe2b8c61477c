package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"portico/cmd/portico/config"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"
)

// portico runs the program in process.
func portico(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), environment{stdout: &out, stderr: &errs, environ: environ}, args)
	return code, out.String(), errs.String()
}

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
		{"help canary verdit", exitUsage, "", `there is no command "verdit"; did you mean "verdict"?`},
		{"serve --lisen 127.0.0.1:0", exitUsage, "", `did you mean "listen"?`},
		{"serve -lisen 127.0.0.1:0", exitUsage, "", `did you mean "listen"?`},
		{"help chek", exitUsage, "", `did you mean "check"?`},
		{"chek", exitUsage, "", `there is no command "chek"; did you mean "check"?`},
		{"check --no-such-flag", exitUsage, "", "no-such-flag"},
		{"check --tracker", exitUsage, "", "flag needs an argument"},
		{"check --tracker=", exitUsage, "", "needs a value"},
		{"check --tracker http://a/ more", exitUsage, "", `unexpected argument "more"`},
		{"check --tracker http://a/ --config f", exitUsage, "", "exclude each other"},
		{"check --tracker nonsense", exitFailed, "", "--tracker: trackers.main.url: nonsense: must begin with"},
		{"tracker --listen nowhere --dialect bugzila", exitUsage, "", `unknown dialect "bugzila": known are bugzilla-5, bmo, harmony`},
		{"tracker --listen 127.0.0.1:999999", exitFailed, "", "portico tracker: listen for tracker: "},
		{"demo --admin-listen :9080", exitUsage, "", ":9080 is open to other machines"},
		{"demo --drive -1", exitUsage, "", "needs a number of requests"},
		{"demo --stay", exitUsage, "", "--stay is for --drive"},
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

// TestFlagsWithOneHyphen: what the flag package of the standard library takes is understood, and values stay what they are.
func TestFlagsWithOneHyphen(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker)
	for _, args := range [][]string{{"check", "-config", file, "-redis", "redis://127.0.0.1:6379/0"}, {"check", "-config=" + file, "-print"}, {"check", "--config", file, "--print=false"}} {
		if code, stdout, stderr := portico(t, nil, args...); code != exitOK || !strings.Contains(stdout, "http://tracker.example/") {
			t.Errorf("portico %q: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
	for args, want := range map[string]string{
		"cache show -product P -component C -json":    `GET /cache?component=C&product=P`,
		"cache purge -product=P":                      `POST /cache/purge?product=P`,
		"canary findings -caller c -path x -json":     `GET /canary/findings.json?caller=c&path=x`,
		"canary fixed a b --actor c --reason d -json": `POST /canary/judgements/fixed {"actor":"c","reason":"d","signatures":["a","b"],"until":""}`,
		"canary sampling -sticky -sample 0.5":         `POST /canary/sampling {"default":0.5,"sticky":true}`,
	} {
		asked := ""
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = strings.TrimSpace(r.Method + " " + r.URL.String() + " " + string(body))
			_, _ = w.Write([]byte("{}"))
		}))
		code, stdout, stderr := portico(t, nil, append(strings.Fields(args), "-admin", listener.URL)...)
		listener.Close()
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
		if code, stdout, _ := portico(t, nil, "completion", shell); code != exitOK || !strings.Contains(stdout, "portico") {
			t.Errorf("%s: exit %d\n%s", shell, code, stdout)
		}
	}
	if code, stdout, stderr := portico(t, nil, "completion", "bsh"); code != exitUsage || stdout != "" || !strings.Contains(stderr, `there is no command "bsh"; did you mean "bash"?`) {
		t.Errorf("bsh: exit %d\n%s%s", code, stdout, stderr)
	}
	for _, c := range []struct{ word, want string }{{"ver", "verdict"}, {"--for", "--format"}} {
		if code, stdout, _ := portico(t, nil, "__complete", "canary", c.word); code != exitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("canary %s: exit %d\n%s", c.word, code, stdout)
		}
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
		"tracker":    {answer(200, `{"version":"5.2+"}`), exitOK, "probe      tracker main: version 5.2+"},
		"web page":   {answer(200, "<html>"), exitFailed, "without a version in JSON: this is no tracker; check trackers.main.url\nThe configuration is good, but a probe failed.\n"},
		"other JSON": {answer(200, "{}"), exitFailed, "FAILED: HTTP 200 without a version"},
		"escapes":    {answer(200, `{"version":"5\u001b[2J"}`), exitFailed, "FAILED: an invalid version"},
		"long":       {answer(200, `{"version":"`+strings.Repeat("5", 1000)+`"}`), exitFailed, "FAILED: an invalid version"},
		"elsewhere":  {http.RedirectHandler("https://u:p@else.example/", http.StatusFound), exitFailed, "redirects to https://else.example/: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			code, stdout, stderr := portico(t, nil, "check", "--probe", "--tracker", server.URL+"/bugs/")
			if code != tt.code || !strings.Contains(stdout, tt.want) {
				t.Errorf("exit %d\n%s%s", code, stdout, stderr)
			}
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/rest.cgi/version", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"version":"5.0.4"}`)) })
	old := httptest.NewServer(mux)
	defer old.Close()
	if code, stdout, _ := portico(t, nil, "check", "--probe", "--tracker", old.URL); code != exitOK || !strings.Contains(stdout, "tracker main: version 5.0.4") {
		t.Errorf("a tracker without /rest, which serve finds: exit %d\n%s", code, stdout)
	}
	named := writeFile(t, "c.yaml", "trackers: {main: {url: '"+old.URL+"', dialect: bugzilla-5}}\n")
	if code, stdout, _ := portico(t, nil, "check", "--probe", "--config", named); code != exitFailed || !strings.Contains(stdout, "set trackers.main.dialect to auto") {
		t.Errorf("one that serve does not find: exit %d\n%s", code, stdout)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if code, stdout, _ := portico(t, nil, "check", "--print", "--probe", "--tracker", server.URL); code != exitFailed || !strings.Contains(stdout, "FAILED: cannot reach the tracker at ") {
		t.Errorf("nobody there: exit %d\n%s", code, stdout)
	}
}

func TestProbeOfRedis(t *testing.T) {
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"version":"5.2"}`)) }))
	defer tracker.Close()
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
			code, stdout, stderr := portico(t, tt.environ, "check", "--probe", "--tracker", tracker.URL)
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
