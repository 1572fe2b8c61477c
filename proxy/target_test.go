package proxy_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// TestPassthroughGoesWhereItIsChosen moves the reads of one key to another tracker: everything about a request is that
// tracker's.
func TestPassthroughGoesWhereItIsChosen(t *testing.T) {
	moved, other := backendAt(t, "/new/")
	other.Names, other.Dialect = []string{"new.example"}, func(context.Context) mapping.Dialect { return mapping.Dialect{} }
	usual, base := behind(t, "/old/", func(o *proxy.Options) {
		o.Passthrough.Choose = func(caller upstream.Caller, write bool) *proxy.Target {
			if caller.Credentials.APIKey == "moved" && caller.UserAgent == "agent" && caller.Address == "127.0.0.1" && !write {
				return &other
			}
			return nil
		}
	})
	send := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://new.example/new/x")
		w.WriteHeader(http.StatusSeeOther)
		_, _ = io.WriteString(w, r.Host)
	}
	usual.response, moved.response = send, send
	const link = "/editflagtypes.cgi?action=deactivate&id=3&api_key=moved" // it changes, whatever its method
	for _, c := range []struct {
		method, path, body   string
		header               []string
		reached, old         *backend
		wantTarget, location string
	}{
		{"GET", "/rest/version", "", []string{"X-BUGZILLA-API-KEY", "moved", "User-Agent", "agent"}, moved, usual, "/new/rest/version?Bugzilla_api_key=moved", base + "/x"},
		{"GET", "/rest/version?api_key=moved", "", []string{"User-Agent", "agent"}, moved, usual, "/new/rest/version?api_key=moved", base + "/x"},
		{"GET", link, "", []string{"User-Agent", "agent"}, usual, moved, "/old" + link, "http://new.example/new/x"},
		{"GET", "/rest/version", "", []string{"User-Agent", "agent"}, usual, moved, "/old/rest/version", "http://new.example/new/x"},
		{"POST", "/rest/version", "{}", []string{"X-BUGZILLA-API-KEY", "moved", "User-Agent", "agent"}, usual, moved, "/old/rest/version", "http://new.example/new/x"},
	} {
		usual.last, moved.last = nil, nil
		response := ask(t, c.method, base+c.path, c.body, c.header...)
		if c.reached.last == nil || c.old.last != nil || c.reached.target != c.wantTarget {
			t.Errorf("%s %s %v reached the wrong tracker, or as %q", c.method, c.path, c.header, c.reached.target)
			continue
		}
		if got := response.header.Get("Location"); got != c.location || !strings.HasPrefix(response.body, "127.0.0.1:") {
			t.Errorf("%s %s leads to %s, want %s; Host was %s", c.method, c.path, got, c.location, response.body)
		}
	}
}

// TestAnAddressThatCredentialsMakeTooLong: a web server would response with a page about an address that the client never wrote.
func TestAnAddressThatCredentialsMakeTooLong(t *testing.T) {
	reads := false
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Dialect = func(context.Context) mapping.Dialect { return mapping.Dialect{HeaderCredentials: reads} }
	})
	path := "/rest/bug/1?z=" + strings.Repeat("z", 8120)
	response := ask(t, "GET", base+path, "", "X-BUGZILLA-API-KEY", strings.Repeat("k", 40))
	response.wantError(t, 414, "200414")
	if tracker.last != nil || response.header.Get("Portico-Error") != "too-large" {
		t.Errorf("the tracker was asked: %v, and the reason is %q", tracker.last != nil, response.header.Get("Portico-Error"))
	}
	ask(t, "GET", base+path, "").wantStatus(t, 200)
	reads = true
	ask(t, "GET", base+path, "", "X-BUGZILLA-API-KEY", strings.Repeat("k", 40)).wantStatus(t, 200)
	reads = false
	// What was too long when it came is the tracker's to judge.
	ask(t, "GET", base+"/rest/bug/1?z="+strings.Repeat("z", 8175), "", "X-BUGZILLA-API-KEY", "k").wantStatus(t, 200)
}

// TestAMappedKeyIsAllThatTheTargetSees of a caller's credentials. In a body they cannot be replaced.
func TestAMappedKeyIsAllThatTheTargetSees(t *testing.T) {
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Keys = func(caller upstream.Caller) (upstream.Caller, error) {
			caller.Credentials = upstream.Credentials{APIKey: "mapped"}
			return caller, nil
		}
	})
	ask(t, "GET", base+"/rest/bug/1?x=1&Bugzilla_api_key=own&token=2", "", "Authorization", "Basic eA==", "Cookie", "Bugzilla_logincookie=x",
		"X-Bugzilla-Token", "3", "X-Bugzilla-Login", "l", "X-Bugzilla-Password", "p").wantStatus(t, 200)
	shown := tracker.last.Header
	for name, want := range map[string]string{
		"X-Bugzilla-Api-Key": "mapped", "Authorization": "", "Cookie": "", "X-Bugzilla-Token": "", "X-Bugzilla-Login": "", "X-Bugzilla-Password": "",
	} {
		if got := shown.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if tracker.target != "/rest/bug/1?x=1" {
		t.Errorf("the tracker got %s", tracker.target)
	}
	tracker.last = nil
	refused := ask(t, "POST", base+"/rest/bug/1/comment", `{"api_key":"own"}`, "Content-Type", "application/json")
	if refused.status != 401 || refused.header.Get("Portico-Error") != "no-mapped-key" || tracker.last != nil {
		t.Errorf("got %d %v; the tracker got %v", refused.status, refused.header, tracker.last)
	}
}
