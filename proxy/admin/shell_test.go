package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"portico/cache"
	"portico/proxy/admin"
	"portico/proxy/admin/view"
	"portico/upstream/journal"
	"portico/upstream/transport"
)

// greeting is a page that shows its path.
func greeting(body string, live bool) http.Handler {
	middle := view.New(fstest.MapFS{"html/page.html": {Data: []byte(body)}}, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admin.Show(w, r, admin.Sheet{Status: http.StatusTeapot, Title: "A <b>", Templates: middle, Body: "page.html", Data: r.URL.Path, Live: live})
	})
}

func TestFrame(t *testing.T) {
	_, base := open(t, admin.Options{Token: "secret", Metrics: admin.NewMetrics(), Pages: []admin.Page{
		{Path: "/canary", Title: "Canary", Handler: greeting("<h1>{{.}}</h1>", false)}, {Path: "/can", Title: "Can", Handler: http.NotFoundHandler()},
	}})
	status, header, body := look(t, "GET", base+"/canary/x<y", "Authorization", "Bearer secret")
	if status != http.StatusTeapot || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %v", status, header)
	}
	for _, part := range []string{"<title>A &lt;b&gt; · Portico</title>", "<h1>/canary/x&lt;y</h1>", `<a href="/canary" aria-current="page">Canary</a>`, `<a href="/can">Can</a>`, `<a href="/">Status</a>`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	if strings.Contains(body, "refresh") {
		t.Error("a page that is not to be left open offers to load itself")
	}
	for path, kind := range map[string]string{"/assets/style.css": "text/css; charset=utf-8", "/assets/page.js": "text/javascript; charset=utf-8"} {
		status, header, content := look(t, "GET", base+path)
		if status != 200 || header.Get("Content-Type") != kind || content == "" || !strings.Contains(body, `="`+path+`"`) {
			t.Errorf("%s: %d %v", path, status, header)
		}
	}
}

func TestPageThatLoadsItself(t *testing.T) {
	_, base := open(t, admin.Options{})
	for query, want := range map[string]string{
		"?refresh=10": `<meta http-equiv="refresh" content="10">`, "?refresh=1&x=%22": `<meta http-equiv="refresh" content="10">`, "": "",
	} {
		_, _, body := look(t, "GET", base+"/"+query)
		if strings.Contains(body, "http-equiv") != (want != "") || !strings.Contains(body, want) {
			t.Errorf("%q: %s", query, body)
		}
	}
	_, _, body := look(t, "GET", base+"/?x=1&refresh=10")
	if !strings.Contains(body, `<a href="/">Stop reloading</a>`) {
		t.Errorf("one cannot stop it: %s", body)
	}
}

func TestPageThatCannotBeShown(t *testing.T) {
	_, base := open(t, admin.Options{Pages: []admin.Page{{Path: "/x", Title: "X", Handler: greeting("half {{.Missing}}", false)}}})
	if status, _, body := look(t, "GET", base+"/x"); status != 500 || strings.Contains(body, "half") {
		t.Errorf("%d %s", status, body)
	}
}

// The first page says in words what each member of the status means.
func TestStatusInWords(t *testing.T) {
	at := time.Date(2026, 11, 21, 17, 30, 0, 0, time.UTC)
	state := admin.Status{
		Started: at, Primary: "main", NeedRestart: []string{"primary"},
		Trackers: map[string]admin.TrackerStatus{
			"main": {URL: "http://a/", Serves: true, Dialect: "bmo", InUse: 3, Slots: 64, Breakers: []transport.Status{
				{Breaker: "read", State: transport.Open, Since: at, Cause: "it is <gone>", History: []transport.Change{{At: at, From: transport.Closed, To: transport.Open, Reason: "connect"}}},
				{Breaker: "write", State: transport.Closed},
			}},
			"a-new": {Problem: "it redirects", Dialect: "bmo", DialectPinned: true, TrackerVersion: "5.2"},
		},
		Cache: &cache.Status{Redis: true, Undelivered: true, LocalItems: 2}, Canary: &admin.CanaryStatus{Candidate: "next", Sample: .5},
		Switchover: &admin.SwitchoverStatus{Source: "admin", Killed: true, Undelivered: "no store", Rules: []admin.RuleStatus{
			{Rule: "all", Reads: "new", Writes: "old", GoingBack: journal.Outlook{State: journal.OutlookDrain, Drain: 1200, Seconds: 60}},
		}},
		Journal: &journal.Status{Paused: true, Pending: 1200, Lag: 600},
	}
	_, base := open(t, admin.Options{Status: func() admin.Status { return state }})
	_, _, body := look(t, "GET", base+"/")
	for _, part := range []string{"2026-11-21 17:30:00 UTC", "<code>primary</code>", "bmo, assumed until", "bmo, as of version 5.2", "3 of at most 64", "the candidate; it serves no client",
		"reads are refused since", "it is &lt;gone&gt;", "closed → open, reason connect", "writes reach the tracker", "it redirects",
		"noticed late", "one has not reached Redis", "about 2 responses", "not served: the tracker responds", "50 % of requests, next with main",
		"reads new, writes old", "going back is safe once 1,200 writes are copied, in about 60 s", "everything goes to main", "only this process knows: no store",
		"an operator", "paused", "1,200, the oldest for 10 min"} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	if strings.Index(body, "Tracker main") > strings.Index(body, "Tracker a-new") {
		t.Errorf("the primary is not the first tracker: %s", body)
	}
	state = admin.Status{Cache: &cache.Status{Embedded: true, TrackerSick: true, LocalItems: 1}}
	_, _, body = look(t, "GET", base+"/")
	for _, part := range []string{"not in use, since it does not respond as it should; it runs in this process", "no other process shares", "all have reached", "served, since the tracker fails", "about 1 response<"} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
}
