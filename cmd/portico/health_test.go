package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHealth: one line, and an exit code for each state.
func TestHealth(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case path != "readyz" || base == "missing":
			http.NotFound(w, r)
		case base == "page":
			http.Error(w, "<!DOCTYPE html>\n<html><body>Not Found</body></html>", http.StatusNotFound)
		case base == "draining":
			http.Error(w, "starting or draining", http.StatusServiceUnavailable)
		case base == "hung":
			<-hung
		}
	}))
	defer listener.Close()
	defer close(hung)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		admin          string
		code           int
		stdout, stderr string
	}{
		{listener.URL + "/ready/", exitOK, "ready\n", ""},
		{listener.URL + "/draining", exitFailed, "not ready: starting or draining\n", ""},
		{listener.URL + "/missing", exitNotAsked, "", "says 404"},
		{listener.URL + "/hung", exitNotAsked, "", "no response in time; is it running? use --admin\n"},
		{gone.URL, exitNotAsked, "", "cannot reach Portico's admin listener at " + strings.TrimPrefix(gone.URL, "http://") + ": connection refused; is it running? use --admin\n"},
		{listener.URL + "/page", exitNotAsked, "", "says 404: a page; does --admin name the admin listener?\n"},
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
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	at := strings.TrimPrefix(gone.URL, "http://")
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
