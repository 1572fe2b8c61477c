package admin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"portico/proxy/admin"
	"portico/proxy/admin/view"
)

// greeting is a page that shows its path.
func greeting(body string, live bool) http.Handler {
	middle := view.MustParse(fstest.MapFS{"html/page.html": {Data: []byte(body)}}, nil)
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
	_, base := open(t, admin.Options{Status: func(context.Context) any { return nil }})
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

func TestStatusAsTables(t *testing.T) {
	state := map[string]any{
		"started": "2026-11-21T19:24:08.900945678Z", "on": true, "off": false, "ended": "2026-11-21T19:30:00+02:00",
		"trackers": map[string]any{"main": map[string]any{"in_use": 3, "breakers": []any{map[string]any{"breaker": "read", "opens": 1}, map[string]any{"breaker": "write"}}}},
	}
	_, base := open(t, admin.Options{Status: func(context.Context) any { return state }})
	_, _, body := look(t, "GET", base+"/")
	for _, part := range []string{"2026-11-21 19:24:08 UTC", "2026-11-21 17:30:00 UTC", "<td>yes</td>", "<td>no</td>", `<h2 class="label">trackers</h2>`, `<th scope="row"><span>main</span></th>`, `<th scope="row"><span class="label">in use</span></th><td>3</td>`,
		`<th scope="col"><span class="label">breaker</span></th><th scope="col"><span class="label">opens</span></th>`, "<td>write</td><td>none</td>"} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
}
