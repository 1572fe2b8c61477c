package proxy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

const oneAttachment = `{"bugs":{"5":[{"id":11,"is_private":0,"is_obsolete":1,"is_patch":0,"summary":"<b>&\"x\"'"}]},"attachments":{}}`

func responding(documents func() *mapping.Document) *fakeTracker {
	reply := func(context.Context, upstream.Caller, mapping.AttachmentsRequest) (mapping.Reply, error) {
		return mapping.Reply{Document: documents()}, nil
	}
	return &fakeTracker{bugAttachments: reply, attachment: reply}
}

func failing(err error) *fakeTracker {
	return &fakeTracker{
		flagTypes: func(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
			return mapping.Reply{}, err
		},
		createFlagType: func(context.Context, upstream.Caller, mapping.FlagTypeCreate) (mapping.Reply, error) {
			return mapping.Reply{}, err
		},
	}
}

func TestPageIsEscaped(t *testing.T) {
	base := serve(t, proxy.Options{Tracker: responding(func() *mapping.Document { return document(oneAttachment) })})
	response := ask(t, "GET", base+"/rest/bug/5/attachment", "", "Accept", "text/html")
	if strings.Contains(response.body, "<b>") || !strings.Contains(response.body, "&lt;b&gt;&amp;\\&quot;x\\&quot;&#39;") ||
		!strings.Contains(response.body, "\n   &quot;bugs&quot;") {
		t.Errorf("page %s", response.body)
	}
	failed := ask(t, "DELETE", base+"/rest/bug/5/attachment", "", "Accept", "text/html")
	if failed.status != 404 || !strings.Contains(failed.body, "&quot;error&quot;: true") {
		t.Errorf("page %d %s", failed.status, failed.body)
	}
	refused := ask(t, "POST", base+"/rest/flag_type", "{}", "Accept", "text/html")
	if refused.status != 401 || refused.header.Get("Content-Type") != "text/html; charset=UTF-8" {
		t.Errorf("page %d %s", refused.status, refused.body)
	}
}

// The rows are the recorded exchanges proto.jsonp.*.
func TestJSONP(t *testing.T) {
	tracker := responding(func() *mapping.Document { return document(oneAttachment) })
	tracker.flagTypes = failing(&mapping.Error{Code: 106, Status: 401, Message: "no"}).flagTypes
	base := serve(t, proxy.Options{Tracker: tracker})
	for _, name := range []string{"cb", "a.b[0]", "jQuery_1"} {
		response := ask(t, "GET", base+"/rest/bug/5/attachment?callback="+name, "", "Accept", "text/html")
		if response.body != "/**/"+name+"("+oneAttachment+")" || response.header.Get("Content-Type") != "text/javascript; charset=UTF-8" ||
			response.length != int64(len(response.body)) {
			t.Errorf("%s: %+v", name, response)
		}
	}
	ask(t, "GET", base+"/rest/bug/5/attachment?callback=alert(1)", "").wantError(t, 400, "32611")
	for _, twice := range []string{"callback=a&callback=b", "callback=a&x=1;callback=", "callback=&callback=a"} {
		ask(t, "GET", base+"/rest/bug/5/attachment?"+twice, "").wantError(t, 400, "32611")
		ask(t, "POST", base+"/rest/flag_type"+key+"&"+twice, `{"name":"n","description":"d"}`).wantError(t, 400, "32611")
	}
	if got := ask(t, "GET", base+"/rest/bug/5/attachment?callback=", ""); got.body != oneAttachment {
		t.Errorf("empty callback: %s", got.body)
	}
	failed := ask(t, "GET", base+"/rest/flag_type/P?callback=cb", "")
	if failed.status != 401 || !strings.HasPrefix(failed.body, `/**/cb({"error":true,"code":106,`) {
		t.Errorf("error: %+v", failed)
	}
	ask(t, "GET", base+"/rest/nope?callback=cb", "").wantError(t, 404, "32614")
}

func TestCommonHeaders(t *testing.T) {
	base := serve(t, proxy.Options{})
	for _, response := range []reply{
		ask(t, "GET", base+"/rest/flag_type/P", ""), ask(t, "GET", base+"/rest/nope", ""), ask(t, "OPTIONS", base+"/rest/flag_type/P", ""),
		ask(t, "POST", base+"/rest/flag_type", "{"), ask(t, "GET", base+"/x%00/%2e%2e/..", ""),
	} {
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN",
			"X-Xss-Protection": "1; mode=block", "Content-Type": "application/json; charset=UTF-8",
		} {
			if got := response.header.Get(name); got != want {
				t.Errorf("%d: %s is %q", response.status, name, got)
			}
		}
		if response.length != int64(len(response.body)) || response.header.Get("X-Request-Id") == "" {
			t.Errorf("length %d of %d bytes, id %q", response.length, len(response.body), response.header.Get("X-Request-Id"))
		}
		if response.header.Get("Location") != "" || response.header.Get("Www-Authenticate") != "" {
			t.Errorf("unexpected headers: %v", response.header)
		}
	}
}

func TestFlagTypeTagsAndCacheHeaders(t *testing.T) {
	info := &mapping.CacheInfo{}
	tracker := &fakeTracker{flagTypes: func(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
		found := document(noFlagTypes)
		found.ETag = `"tag"`
		own := *info // which the request may read after its response
		return mapping.Reply{Document: found, Cache: &own}, nil
	}}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/flag_type/P"
	for condition, want := range map[string]int{
		`"tag"`: 304, `tag`: 304, `*`: 304, `"x", "tag"`: 304, `"x", tag`: 304, `W/"tag"`: 304, `W/"x", W/"tag"`: 304, `"nope"`: 200, ``: 200,
	} {
		response := ask(t, "GET", base, "", "If-None-Match", condition)
		if response.status != want || response.header.Get("Etag") != `"tag"` || want == 304 && response.body != "" {
			t.Errorf("%s: %+v, want %d", condition, response, want)
		}
	}
	weak := ask(t, "GET", base, "", "If-None-Match", `W/"tag"`, "Accept-Encoding", "gzip")
	if weak.status != 304 || weak.header.Get("Etag") != `W/"tag"` || weak.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("for a tag that came with a compressed response: %+v", weak)
	}
	if got := ask(t, "GET", base, "", "If-None-Match", "*", "Accept", "text/html"); got.status != 200 || got.header.Get("Etag") != "" {
		t.Errorf("a page is another text than the one with the tag: %+v", got)
	}
	for _, c := range []struct {
		info      mapping.CacheInfo
		want, age string
	}{
		{mapping.CacheInfo{Hit: true, Age: 90 * time.Second, TTL: 210 * time.Second, Detail: "local"}, "Portico; hit; ttl=210; detail=local", "90"},
		{mapping.CacheInfo{Hit: true, Stale: true, Age: 400 * time.Second, TTL: -100 * time.Second}, "Portico; hit; ttl=-100", "400"},
		{mapping.CacheInfo{Forward: "miss", Stored: true}, "Portico; fwd=miss; stored", ""},
		{mapping.CacheInfo{Forward: "stale", Collapsed: true}, "Portico; fwd=stale; collapsed", ""},
		{mapping.CacheInfo{Forward: "bypass"}, "Portico; fwd=bypass", ""},
	} {
		*info = c.info
		response := ask(t, "GET", base, "")
		if response.header.Get("Cache-Status") != c.want || response.header.Get("Age") != c.age {
			t.Errorf("%+v: %q, age %q", c.info, response.header.Get("Cache-Status"), response.header.Get("Age"))
		}
	}
}

// TestRefusalsFromTheCacheSaySo: "no such component" is remembered, too. An error of
// Portico's own is not a cached response.
func TestRefusalsFromTheCacheSaySo(t *testing.T) {
	for _, c := range []struct {
		err       *mapping.Error
		want, age string
	}{
		{&mapping.Error{Code: 51, Status: 404, Message: "none"}, "Portico; hit; ttl=3", "2"},
		{&mapping.Error{Code: mapping.CodeBadGateway, Status: 502, Reason: mapping.ReasonBadResponse, Message: "broken"}, "", ""},
	} {
		reply := func(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
			return mapping.Reply{Cache: &mapping.CacheInfo{Hit: true, Age: 2 * time.Second, TTL: 3 * time.Second}}, c.err
		}
		base := serve(t, proxy.Options{Tracker: &fakeTracker{flagTypes: reply}})
		response := ask(t, "GET", base+"/rest/flag_type/P/C", "")
		if response.status != c.err.Status || response.header.Get("Cache-Status") != c.want || response.header.Get("Age") != c.age {
			t.Errorf("%v: %d, %q, age %q", c.err, response.status, response.header.Get("Cache-Status"), response.header.Get("Age"))
		}
	}
}

func TestAttachmentTagsAreTheTrackers(t *testing.T) {
	var asked string
	reply := func(_ context.Context, _ upstream.Caller, request mapping.AttachmentsRequest) (mapping.Reply, error) {
		asked = request.IfNoneMatch
		found := document(oneAttachment)
		found.ETag, found.Cookies = "tMGK", []string{"Bugzilla_login_request_cookie=x; path=/"}
		if asked == "tMGK" {
			found = &mapping.Document{ETag: "tMGK", NotModified: true}
		}
		return mapping.Reply{Document: found}, nil
	}
	base := serve(t, proxy.Options{Tracker: &fakeTracker{bugAttachments: reply}}) + "/rest/bug/5/attachment"
	response := ask(t, "GET", base, "", "If-None-Match", "other")
	if response.status != 200 || response.header.Get("Etag") != "tMGK" || response.header.Get("Set-Cookie") == "" {
		t.Errorf("got %+v", response)
	}
	if response := ask(t, "GET", base, "", "If-None-Match", "tMGK"); response.status != 304 || response.body != "" || response.header.Get("Etag") != "tMGK" {
		t.Errorf("got %+v", response)
	}
	if ask(t, "GET", base, "", "If-None-Match", `W/"x"`); asked != `"x"` {
		t.Errorf("the tracker, which knows no weak tags, was asked for %s", asked)
	}
	if ask(t, "GET", base+"?callback=cb", "", "If-None-Match", "tMGK"); asked != "" {
		t.Error("the tag of one representation was used for another")
	}
}

func TestErrorsOfTheTracker(t *testing.T) {
	for _, c := range []struct {
		err          error
		status       int
		code, reason string
	}{
		{&mapping.Error{Code: 106, Status: 401, Message: "m"}, 401, "106", ""},
		{&mapping.Error{Code: 51, Status: 404, Message: "m", Documentation: "http://d.example/"}, 404, "51", ""},
		{&mapping.Error{Code: 200503, Status: 503, Message: "m", Reason: mapping.ReasonBreakerOpen, RetryAfter: 1100 * time.Millisecond}, 503, "200503", "breaker-open"},
		{&mapping.Error{Code: 200504, Status: 504, Message: "m", Reason: mapping.ReasonTimeout, Unknown: true}, 504, "200504", "tracker-timeout; outcome=unknown"},
		{context.DeadlineExceeded, 504, "200504", "tracker-timeout"},
		{errors.New("password=SECRET"), 500, "200500", "internal"},
	} {
		base := serve(t, proxy.Options{Tracker: failing(c.err)})
		response := ask(t, "GET", base+"/rest/flag_type/P", "")
		response.wantError(t, c.status, c.code)
		if got := response.header.Get("Portico-Error"); got != c.reason {
			t.Errorf("%v: Portico-Error %q", c.err, got)
		}
		if strings.Contains(response.body, "SECRET") {
			t.Errorf("leaked: %s", response.body)
		}
		if wait := response.header.Get("Retry-After"); c.status == 503 && wait != "2" {
			t.Errorf("Retry-After %q", wait)
		}
	}
	base := serve(t, proxy.Options{Tracker: failing(context.DeadlineExceeded), DocumentationURL: "http://docs.example/"})
	response := ask(t, "POST", base+"/rest/flag_type"+key, `{"name":"n","description":"d"}`)
	response.wantError(t, 504, "200504")
	if response.header.Get("Portico-Error") != "tracker-timeout; outcome=unknown" || response.member(t, "documentation") != `"http://docs.example/"` {
		t.Errorf("got %+v", response)
	}
}

// Members that only the tracker knows are kept behind the others. What it did not say is not made up.
func TestErrorsKeepTheirMembers(t *testing.T) {
	extra := mapping.Members{{Name: "extra", Value: []byte("5.0")}}
	const rest = `"message":"m","documentation":"d","extra":5.0}`
	for code, want := range map[int]string{51: `{"error":true,"code":51,` + rest, 0: `{"error":true,` + rest} {
		failed := &mapping.Error{Code: code, Status: 404, Message: "m", Documentation: "d", Extra: extra}
		base := serve(t, proxy.Options{Tracker: failing(failed)})
		if got := ask(t, "GET", base+"/rest/flag_type/P", "").body; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestInterfaceFormOfManyAttachments: a response is not refused for having more in it than a request may have.
func TestInterfaceFormOfManyAttachments(t *testing.T) {
	const many = 20000
	one := `{"is_patch":1,"data":"YQ==","a":[1,2,3,4,5,6,7,8,9,10,11,12]}`
	text := `{"attachments":{},"bugs":{"5":[` + strings.Repeat(one+",", many-1) + one + `]}}`
	base := serve(t, proxy.Options{
		Tracker:   responding(func() *mapping.Document { return stream(text, nil) }),
		Responses: proxy.ResponsesInterface,
	})
	response := ask(t, "GET", base+"/rest/bug/5/attachment", "")
	response.wantStatus(t, 200)
	if got := strings.Count(response.body, `{"is_patch":true,"data":"YQ=="`); got != many {
		t.Errorf("%d attachments have the form of the interface, want %d", got, many)
	}
}

// freshness notes whether the last call asked for a fresh response.
type freshness struct {
	fakeTracker
	fresh bool
}

func (f *freshness) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	f.fresh = call.Fresh
	return f.fakeTracker.Do(ctx, caller, call)
}

func TestClientMayAskForAFreshResponse(t *testing.T) {
	tracker := &freshness{}
	base := serve(t, proxy.Options{Tracker: tracker})
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"Cache-Control", "no-cache", true}, {"Cache-Control", "x, MAX-AGE=0", true}, {"Cache-Control", "no-store", true}, {"Pragma", "no-cache", true},
		{"Cache-Control", "max-age=60", false}, {"Accept", "*/*", false},
	} {
		ask(t, "GET", base+"/rest/flag_type/P", "", c.name, c.value).wantStatus(t, 200)
		if tracker.fresh != c.want {
			t.Errorf("%s: %s: %v", c.name, c.value, tracker.fresh)
		}
	}
}
