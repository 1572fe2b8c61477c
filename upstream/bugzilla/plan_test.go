package bugzilla

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// shown is a call as it would go out, without credentials.
func shown(call Call) string {
	text := call.Method + " " + call.Path
	if query := call.Query.Encode(); query != "" {
		text += "?" + strings.ReplaceAll(query, "%2C", ",")
	}
	if call.Body != nil {
		text += " " + string(call.Body.AppendJSON(nil))
	}
	return text
}

func TestPlanFlagTypes(t *testing.T) {
	for _, c := range []struct {
		dialect            mapping.Dialect
		product, component string
		want               string
	}{
		{mapping.Bugzilla5(), "TestProduct", "", "GET /rest/flag_type/TestProduct"},
		{mapping.Bugzilla5(), "TestProduct", "Component A", "GET /rest/flag_type/TestProduct/Component%20A"},
		{mapping.Bugzilla5(), "TestProduct", "comp/slash", "GET /rest/flag_type/TestProduct?component=comp%2Fslash"},
		{mapping.BMO(), "TestProduct", "comp/slash", "GET /rest/flag_types/TestProduct?component=comp%2Fslash"},
		{mapping.Bugzilla5(), "TestProduct", "100% c", "GET /rest/flag_type/TestProduct?component=100%25+c"},
		{mapping.Bugzilla5(), "TestProduct", "C#", "GET /rest/flag_type/TestProduct?component=C%23"},
		{mapping.Bugzilla5(), "TestProduct", "Why?", "GET /rest/flag_type/TestProduct?component=Why%3F"},
		{mapping.Bugzilla5(), "C#", "", `POST /jsonrpc.cgi {"product":"C#"}`},
		{mapping.Bugzilla5(), "Why?", "C", `POST /jsonrpc.cgi {"product":"Why?","component":"C"}`},
		{mapping.BMO(), "C#", "Why?", "GET /rest/flag_types/C%23/Why%3F"},
		{mapping.Bugzilla5(), "TestProduct", "..", "GET /rest/flag_type/TestProduct?component=.."},
		{mapping.Bugzilla5(), "A+B & C", "", "GET /rest/flag_type/A+B%20&%20C"},
		{mapping.Bugzilla5(), "a/b", "", `POST /jsonrpc.cgi {"product":"a/b"}`},
		{mapping.Bugzilla5(), "..", "c", `POST /jsonrpc.cgi {"product":"..","component":"c"}`},
		{mapping.Bugzilla5(), "Ünï", "", `POST /jsonrpc.cgi {"product":"Ünï"}`},
		{mapping.Bugzilla5(), "P", "Kömp", `POST /jsonrpc.cgi {"product":"P","component":"Kömp"}`},
		{mapping.BMO(), "P", "C", "GET /rest/flag_types/P/C"},
	} {
		call, err := planFlagTypes(c.dialect, mapping.FlagTypesRequest{Product: c.product, Component: c.component})
		if err != nil || shown(call) != c.want || !call.IsRead() {
			t.Errorf("%s %q %q: got %s (%v), want %s", c.dialect.Name, c.product, c.component, shown(call), err, c.want)
		}
	}
	if _, err := planFlagTypes(mapping.BMO(), mapping.FlagTypesRequest{Product: "a/b"}); err == nil {
		t.Error("bmo is asked for a product with a slash")
	}
}

func TestPlanUpdateFlagTypes(t *testing.T) {
	for _, c := range []struct {
		request mapping.FlagTypeUpdate
		want    string
	}{
		{mapping.FlagTypeUpdate{IDs: []int64{20, 21}}, `PUT /rest/flag_type/20 {"ids":[20,21]}`},
		{mapping.FlagTypeUpdate{Names: []string{"u2"}}, `PUT /rest/flag_type/u2 {"names":["u2"]}`},
		{mapping.FlagTypeUpdate{Names: []string{"31337"}}, `PUT /rest/flag_type/names {"names":["31337"]}`},
		{mapping.FlagTypeUpdate{Names: []string{"a/b"}, IDs: []int64{3}}, `PUT /rest/flag_type/3 {"ids":[3],"names":["a/b"]}`},
		{mapping.FlagTypeUpdate{Names: []string{"what?"}}, `PUT /rest/flag_type/names {"names":["what?"]}`},
		{mapping.FlagTypeUpdate{Names: []string{".."}}, `PUT /rest/flag_type/names {"names":[".."]}`},
	} {
		call, err := plan(mapping.Bugzilla5(), upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &c.request})
		if err != nil || shown(call) != c.want || call.IsRead() {
			t.Errorf("got %s (%v), want %s", shown(call), err, c.want)
		}
	}
	if _, err := plan(mapping.BMO(), upstream.Call{UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}}); err == nil {
		t.Error("the bmo dialect takes flag type updates")
	}
	if _, err := plan(mapping.BMO(), upstream.Call{CreateFlagType: &mapping.FlagTypeCreate{}}); err == nil {
		t.Error("the bmo dialect takes flag type creates")
	}
}

func TestPlanAttachments(t *testing.T) {
	read := mapping.AttachmentsRequest{Bugs: []string{"5", "3"}, Attachments: []string{"1"}, Include: []string{"id"}}
	call, err := planAttachments(mapping.Bugzilla5(), mapping.OpBugAttachments, read)
	if want := "GET /rest/bug/5/attachment?attachment_ids=1&ids=3&include_fields=id"; err != nil || shown(call) != want {
		t.Errorf("got %s (%v), want %s", shown(call), err, want)
	}
	call, err = planAttachments(mapping.Bugzilla5(), mapping.OpAttachment, mapping.AttachmentsRequest{Attachments: []string{"1", "2"}, Bugs: []string{"5"}})
	if want := "GET /rest/bug/attachment/1?attachment_ids=2&ids=5"; err != nil || shown(call) != want {
		t.Errorf("got %s (%v), want %s", shown(call), err, want)
	}
	call, err = planAttachments(mapping.BMO(), mapping.OpBugAttachments, mapping.AttachmentsRequest{
		Bugs: []string{"5"}, Include: []string{"id", "size"}, Exclude: []string{"data", "flags"},
	})
	if want := "GET /rest/bug/5/attachment?exclude_fields=data,flags&include_fields=id,size"; err != nil || shown(call) != want {
		t.Errorf("got %s (%v), want %s", shown(call), err, want)
	}
	read.IfNoneMatch = `"tag"`
	if call, _ = planAttachments(mapping.Bugzilla5(), mapping.OpBugAttachments, read); call.IfNoneMatch != read.IfNoneMatch {
		t.Errorf("the condition is %q", call.IfNoneMatch)
	}
	read = mapping.AttachmentsRequest{Bugs: []string{"a/b"}, IfNoneMatch: read.IfNoneMatch}
	call, err = planAttachments(mapping.Bugzilla5(), mapping.OpBugAttachments, read)
	if want := `POST /jsonrpc.cgi {"ids":["a/b"]}`; err != nil || shown(call) != want || call.IfNoneMatch != "" {
		t.Errorf("got %s (%v), want %s", shown(call), err, want)
	}
	call, err = plan(mapping.Bugzilla5(), upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"a/b", "7"}}})
	if want := `POST /rest/bug/ids/attachment {"ids":["a/b",7]}`; err != nil || shown(call) != want {
		t.Errorf("got %s (%v), want %s", shown(call), err, want)
	}
}

// TestAuthorize: each dialect gets credentials where it looks for them, and a bearer token that is the key in one place only
// (tracker-behaviour.md section 14, Credentials). What counts before a key goes along.
func TestAuthorize(t *testing.T) {
	all := upstream.Credentials{APIKey: "K", Login: "l", Password: "p", Token: "8-t", Cookies: "Bugzilla_login=8", Authorization: "Bearer K"}
	read, write := Call{}, Call{Body: mapping.Members{}}
	const inHeaders = "X-Bugzilla-Api-Key=K X-Bugzilla-Login=l X-Bugzilla-Password=p X-Bugzilla-Token=8-t"
	for name, c := range map[string]struct {
		dialect             mapping.Dialect
		call                Call
		have                upstream.Credentials
		query, header, sent string
	}{
		"a read":             {mapping.Bugzilla5(), read, all, "Bugzilla_api_key=K&Bugzilla_login=l&Bugzilla_password=p&Bugzilla_token=8-t", "Cookie=Bugzilla_login=8", "{}"},
		"a write":            {mapping.Bugzilla5(), write, all, "", "Cookie=Bugzilla_login=8", `{"Bugzilla_login":"l","Bugzilla_password":"p","Bugzilla_token":"8-t","Bugzilla_api_key":"K"}`},
		"bmo":                {mapping.BMO(), read, all, "", "Cookie=Bugzilla_login=8 " + inHeaders, "{}"},
		"a write of bmo":     {mapping.BMO(), write, all, "", "Cookie=Bugzilla_login=8 " + inHeaders, "{}"},
		"a key shown twice":  {mapping.BMO(), read, upstream.Credentials{APIKey: "K", Authorization: "Bearer K"}, "", "X-Bugzilla-Api-Key=K", "{}"},
		"a page of bmo":      {mapping.BMO(), read, upstream.Credentials{PageToken: "t", Cookies: "Bugzilla_login=8"}, "Bugzilla_api_token=t", "Cookie=Bugzilla_login=8", "{}"},
		"its writes":         {mapping.BMO(), write, upstream.Credentials{PageToken: "t"}, "", "", `{"Bugzilla_api_token":"t"}`},
		"a read by RPC":      {mapping.Bugzilla5(), Call{RPC: "FlagType.get", Body: mapping.Members{}}, upstream.Credentials{PageToken: "t", Cookies: "Bugzilla_login=8"}, "", "", "{}"},
		"a gateway's bearer": {mapping.BMO(), read, upstream.Credentials{Authorization: "Bearer T"}, "", "Authorization=Bearer T", "{}"},
	} {
		query, header := url.Values{}, http.Header{}
		body := authorize(c.dialect, &c.call, upstream.Caller{Credentials: c.have}, query, header)
		var headers []string
		for name := range header {
			headers = append(headers, name+"="+header.Get(name))
		}
		slices.Sort(headers)
		if got := strings.Join(headers, " "); query.Encode() != c.query || got != c.header || string(body.AppendJSON(nil)) != c.sent {
			t.Errorf("%s has the query %s, the headers %s and the body %s", name, query.Encode(), got, body.AppendJSON(nil))
		}
	}
}

// TestAccountThatCounts: the groups are those of the account whose credential the tracker looks at first.
func TestAccountThatCounts(t *testing.T) {
	for name, test := range map[string]struct {
		dialect mapping.Dialect
		have    upstream.Credentials
		want    string
	}{
		"a login":                 {mapping.Bugzilla5(), upstream.Credentials{Login: "l", Password: "p", APIKey: "K"}, "/rest/user?include_fields=name%2Cgroups&names=l"},
		"a login alone":           {mapping.Bugzilla5(), upstream.Credentials{Login: "l", APIKey: "K"}, "?"},
		"a key":                   {mapping.Bugzilla5(), upstream.Credentials{APIKey: "K"}, "?"},
		"a tracker that can tell": {mapping.BMO(), upstream.Credentials{Login: "l", Password: "p", APIKey: "K", Authorization: "Bearer K"}, "/rest/whoami?"},
	} {
		call, _ := planAccount(test.dialect, upstream.Caller{Credentials: test.have})
		if got := call.Path + "?" + call.Query.Encode(); got != test.want {
			t.Errorf("%s: asks %s, want %s", name, got, test.want)
		}
	}
}

func TestOnlyLoginCookiesGoWithSharedReads(t *testing.T) {
	caller := upstream.Caller{Credentials: upstream.Credentials{Cookies: "a=1; Bugzilla_login=8; Bugzilla_logincookie=x; Bugzilla_login_request_cookie=r"}}
	for operation, want := range map[mapping.Operation]string{
		mapping.OpFlagTypes:      "Bugzilla_login=8; Bugzilla_logincookie=x",
		mapping.OpAttachment:     caller.Credentials.Cookies,
		mapping.OpBugAttachments: caller.Credentials.Cookies,
	} {
		header := http.Header{}
		authorize(mapping.Bugzilla5(), &Call{Operation: operation}, caller, url.Values{}, header)
		if got := header.Get("Cookie"); got != want {
			t.Errorf("%s goes with the cookies %q, want %q", operation, got, want)
		}
	}
}

// TestNoLoginByCookieOverJSONRPC keeps a read what it would be by GET, where such cookies mean nothing.
func TestNoLoginByCookieOverJSONRPC(t *testing.T) {
	var seen http.Header
	client := dial(t, "bugzilla-5", func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		answering(200, "application/json", `{"result":{"bugs":{},"attachments":{},"bug":[],"attachment":[]},"error":null,"id":1}`)(w, r)
	})
	caller := upstream.Caller{Credentials: upstream.Credentials{Cookies: "a=1; Bugzilla_login=8;Bugzilla_logincookie=x; b=2"}}
	_, err := client.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "a/b"}})
	if got := seen.Get("Cookie"); err != nil || got != "" {
		t.Errorf("flag types are asked for with the cookies %q (%v)", got, err)
	}
	reply, err := client.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"a/b"}}})
	if got := seen.Get("Cookie"); err != nil || got != "a=1; b=2" {
		t.Fatalf("attachments are asked for with the cookies %q (%v)", got, err)
	}
	_ = reply.Close()
}

// TestWhatASuccessProves: of several kinds of credentials at once a tracker may look at one only.
func TestWhatASuccessProves(t *testing.T) {
	cookies := "Bugzilla_login=1; Bugzilla_logincookie=x"
	for name, c := range map[string]struct {
		shown       upstream.Credentials
		read, write bool
	}{
		"key":                    {upstream.Credentials{APIKey: "k"}, true, true},
		"bearer":                 {upstream.Credentials{APIKey: "k", Authorization: "Bearer k"}, true, true},
		"bearer of a gateway":    {upstream.Credentials{Authorization: "Bearer k"}, false, true},
		"key and other cookies":  {upstream.Credentials{APIKey: "k", Cookies: "theme=dark"}, true, true},
		"login":                  {upstream.Credentials{Login: "l", Password: "p"}, true, true},
		"token":                  {upstream.Credentials{Token: "1-t"}, true, true},
		"token that is none":     {upstream.Credentials{Token: "t-1"}, false, true},
		"cookies":                {upstream.Credentials{Cookies: cookies}, false, true},
		"basic":                  {upstream.Credentials{Authorization: "Basic x"}, false, true},
		"key beside a login":     {upstream.Credentials{APIKey: "k", Login: "l", Password: "p"}, false, false},
		"key beside half of one": {upstream.Credentials{APIKey: "k", Login: "l"}, false, false},
		"key beside cookies":     {upstream.Credentials{APIKey: "k", Cookies: cookies}, false, false},
		"key beside basic":       {upstream.Credentials{APIKey: "k", Authorization: "Basic x"}, false, false},
	} {
		if read, write := SuccessProves(c.shown, false), SuccessProves(c.shown, true); read != c.read || write != c.write {
			t.Errorf("%s: read %v, write %v", name, read, write)
		}
	}
}

// FuzzResource proves that no name makes a path that means another resource.
func FuzzResource(f *testing.F) {
	for _, seed := range []string{"a", "..", ".", "a/b", "../../x", "%2e%2e", "a?b#c", "ü", "\x00", " ", "a;b", "\\..\\", "%"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, name string, stock bool) {
		dialect := mapping.BMO()
		if stock {
			dialect = mapping.Bugzilla5()
		}
		escaped, err := resource(dialect, "flag_type", name)
		if err != nil {
			return
		}
		parsed, err := url.Parse("http://tracker.example" + escaped)
		if err != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
			t.Fatalf("%q makes %q: %v", name, escaped, err)
		}
		segments := strings.Split(parsed.EscapedPath(), "/")
		if len(segments) != 4 || path.Clean(parsed.EscapedPath()) != parsed.EscapedPath() {
			t.Fatalf("%q makes %q, which is another resource", name, escaped)
		}
		if decoded, err := url.PathUnescape(segments[3]); err != nil || decoded != name {
			t.Fatalf("%q arrives as %q", name, decoded)
		}
		if stock && strings.ContainsAny(strings.ToLower(escaped), "\\") || stock && strings.Contains(escaped, "%2F") {
			t.Fatalf("%q makes %q, which a stock tracker refuses", name, escaped)
		}
	})
}
