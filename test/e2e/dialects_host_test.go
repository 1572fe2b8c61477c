package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// BMO and Harmony redirect every request whose Host is not that of their urlbase (tracker-behaviour.md section 14, Host).

// portico runs a command of the program that ends by itself, and gives its exit code and what it printed.
func portico(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), process.Portico(t), args...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// A tracker that is put right is noticed without a new start.
func TestATrackerThatRedirectsToItsOwnAddressIsReported(t *testing.T) {
	for _, env := range [][]string{nil, {"TRACKERS_MAIN_DIALECT=bmo"}} {
		t.Run(strings.Join(append(env, "probed"), ""), func(t *testing.T) {
			t.Parallel()
			var serving atomic.Pointer[tracker.Server]
			serving.Store(process.Reference(t, tracker.Options{Dialect: tracker.DialectBMO, URLBase: "https://bugs.example:8443/"}))
			base := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serving.Load().ServeHTTP(w, r) }))
			f := startFacade(t, base.String(), env...)
			const remedy = "trackers.main.host: https://bugs.example:8443"
			process.Eventually(t, "/readyz names the redirect and its remedy", func() bool {
				got := f.operators.get(t, "", "/readyz")
				return got.status == 503 && strings.Contains(string(got.body), remedy)
			})
			for _, path := range []string{"/status", "/"} {
				if got := f.operators.get(t, "", path); got.status != 200 || !strings.Contains(string(got.body), remedy) {
					t.Errorf("%s: %d without the remedy: %s", path, got.status, got.body)
				}
			}
			f.get(t, "", "/rest/bug/attachment/1").refused(t, 502, 200502).want(t, "message~https://bugs.example:8443")
			if code, out := portico(t, "check", "--tracker", base.String(), "--probe"); code == 0 || !strings.Contains(out, remedy) {
				t.Errorf("check --probe: exit %d: %s", code, out)
			}
			serving.Store(process.Reference(t, tracker.Options{Dialect: tracker.DialectBMO}))
			process.Eventually(t, "/readyz succeeds", func() bool { return f.operators.get(t, "", "/readyz").status == 200 })
			f.attachmentOK(t)
		})
	}
}

func (f *facade) attachmentOK(t *testing.T) {
	t.Helper()
	f.get(t, "", "/rest/bug/attachment/5").ok(t, 200).want(t, `attachments.5.data="eA=="`)
}

func TestTheConfiguredHostIsSent(t *testing.T) {
	for _, dialect := range []string{tracker.DialectBMO, tracker.DialectHarmony} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(dialect+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				tape := &recording{}
				handler := tape.over(process.Reference(t, tracker.Options{Dialect: dialect, URLBase: scheme + "://bugs.example/"}))
				base := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/away" {
						w.Header().Set("Location", scheme+"://bugs.example/home")
						w.WriteHeader(http.StatusFound)
						return
					}
					handler.ServeHTTP(w, r)
				}))
				host := scheme + "://bugs.example"
				f := startFacade(t, base.String(), "TRACKERS_MAIN_HOST="+strings.TrimPrefix(host, "http://"))
				f.attachmentOK(t)
				f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200)
				id := f.post(t, "dev", "/rest/bug/7/attachment", upload(`"content_type":"text/plain"`)).ok(t, 201).value(t, "ids.0")
				f.put(t, "dev", "/rest/bug/attachment/"+id, `{"summary":"s"}`).ok(t, 200)
				f.get(t, "dev", "/rest/whoami").ok(t, 200)
				for _, one := range tape.all() {
					if proto := one.header.Get("X-Forwarded-Proto"); one.host != "bugs.example" || proto != scheme {
						t.Errorf("%s %s was sent for the host %q, %q", one.method, one.uri, one.host, proto)
					}
				}
				if got := f.operators.get(t, "", "/readyz"); got.status != 200 {
					t.Errorf("/readyz: %d %s", got.status, got.body)
				}
				if to := f.get(t, "", "/away").header.Get("Location"); to != f.base+"/home" {
					t.Errorf("a redirect leads to %q", to)
				}
				config := process.File(t, "portico.yaml", fmt.Sprintf("trackers: {main: {url: %q, host: %q}}\n", base.String(), host))
				if code, out := portico(t, "check", "--config", config, "--probe"); code != 0 {
					t.Errorf("check --probe: exit %d: %s", code, out)
				}
			})
		}
	}
}

func TestInvalidHostsAreRefused(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"https://", "ftp://x", "a/b", "x:0", "x?y", "u@x", "a b"} {
		config := process.File(t, "portico.yaml", fmt.Sprintf("trackers: {main: {url: http://tracker.example/, host: %q}}\n", host))
		if code, out := portico(t, "check", "--config", config); code == 0 || !strings.Contains(out, "trackers.main.host") {
			t.Errorf("%q: exit %d: %s", host, code, out)
		}
	}
}
