package recording_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"portico/upstream/recording"
)

// form is a way to send a credential.
type form struct {
	name string
	put  func(seen *recording.Exchange, secret string)
}

// parameterNames are what credentials are called in queries and bodies.
var parameterNames = []string{
	"api_key", "Bugzilla_api_key", "token", "Bugzilla_token", "password", "Bugzilla_password", "Bugzilla_logincookie",
	"old_password", "new_password1", "matchpassword", "Bugzilla_api_key[]", "apiKey", "x-client-secret",
}

// forms are all ways of interface.md and docs/reference/clients.md, and what clients do beside them.
func forms() []form {
	list := []form{
		{"X-BUGZILLA-API-KEY", inHeader("X-BUGZILLA-API-KEY", "")},
		{"X-BUGZILLA-TOKEN", inHeader("X-Bugzilla-Token", "")},
		{"X-BUGZILLA-PASSWORD", inHeader("X-Bugzilla-Password", "")},
		{"X-PHABRICATOR-TOKEN", inHeader("X-Phabricator-Token", "")},
		{"bearer", inHeader("Authorization", "Bearer ")},
		{"odd scheme", inHeader("Authorization", "Token ")},
		{"no scheme", inHeader("Authorization", "")},
		{"basic", func(s *recording.Exchange, secret string) {
			s.Request.Headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secret))
		}},
		{"cookie", inHeader("Cookie", "Bugzilla_login=3; Bugzilla_logincookie=")},
		{"any cookie", inHeader("Cookie", "session=")},
		{"a proxy's own", inHeader("Proxy-Authorization", "Bearer ")},
		{"referer", func(s *recording.Exchange, secret string) {
			s.Request.Headers["Referer"] = "http://tracker.example/?api_key=" + url.QueryEscape(secret)
		}},
		{"user and password before the host", func(s *recording.Exchange, secret string) {
			s.Request.Path = "http://me:" + url.QueryEscape(secret) + "@tracker.example" + s.Request.Path
		}},
		{"JSON-RPC in the query", func(s *recording.Exchange, secret string) {
			s.Request.Path = "/jsonrpc.cgi?method=Bug.get&params=" + url.QueryEscape(`[{"ids":[1],"Bugzilla_api_key":`+quote(secret)+`}]`)
		}},
		{"header and query", func(s *recording.Exchange, secret string) {
			s.Request.Headers["X-Bugzilla-Api-Key"] = secret
			s.Request.Path = withQuery(s.Request.Path, "Bugzilla_api_key", secret)
		}},
		{"twice in the query", func(s *recording.Exchange, secret string) {
			s.Request.Path = withQuery(withQuery(s.Request.Path, "api_key", secret), "api_key", secret)
		}},
		{"every byte escaped", func(s *recording.Exchange, secret string) {
			s.Request.Path += "?%61pi%5Fkey=" + escapeAll(secret)
		}},
		{"echoed in the answer", func(s *recording.Exchange, secret string) {
			s.Request.Path = withQuery(s.Request.Path, "token", secret)
			s.Response.Body = fmt.Appendf(nil, `{"error":true,"message":%s}`, quoteMore("no such token: "+secret))
		}},
		{"given in the answer", func(s *recording.Exchange, secret string) {
			s.Response.Body = fmt.Appendf(nil, `{"id":2,"token":%s}`, quote(secret))
			s.Response.Headers["set-cookie"] = "Bugzilla_logincookie=" + url.QueryEscape(secret) + "; path=/"
		}},
		{"redirected", func(s *recording.Exchange, secret string) {
			s.Response.Headers["location"] = "http://tracker.example/x?token=" + url.QueryEscape(secret)
		}},
	}
	for _, name := range parameterNames {
		list = append(list, named(name)...)
	}
	return append(list, form{"user agent", inHeader("User-Agent", "curl api_key=")}) // the corpus counts those before
}

// named are the ways in which a credential of one name is sent.
func named(name string) []form {
	return []form{
		{name + " in the query", func(s *recording.Exchange, secret string) { s.Request.Path = withQuery(s.Request.Path, name, secret) }},
		{name + " in JSON", func(s *recording.Exchange, secret string) {
			body(s, "application/json", `{"ids":[1],`+quote(name)+`: `+quote(secret)+"}")
		}},
		{name + " in JSON, escaped", func(s *recording.Exchange, secret string) {
			body(s, "text/plain", `{"\u00`+fmt.Sprintf("%02x", name[0])+name[1:]+`":`+escapeJSON(secret)+"}")
		}},
		{name + " in JSON as a list", func(s *recording.Exchange, secret string) {
			body(s, "", `{`+quote(name)+`:["x",{"name":`+quote(secret)+"}]}")
		}},
		{name + " in JSON-RPC", func(s *recording.Exchange, secret string) {
			s.Request.Path = "/jsonrpc.cgi"
			body(s, "application/json", `{"id":1,"method":"Bug.get","params":[{`+quote(name)+`:`+quote(secret)+"}]}")
		}},
		{name + " in JSON, twice", func(s *recording.Exchange, secret string) {
			body(s, "application/json", `{`+quote(name)+`:"",`+quote(name)+`:`+quote(secret)+"}")
		}},
		{name + " in broken JSON", func(s *recording.Exchange, secret string) {
			body(s, "application/json", `{`+quote(name)+`:`+quote(secret)+",")
		}},
		{name + " in broken JSON as a form", func(s *recording.Exchange, secret string) {
			body(s, "application/x-www-form-urlencoded", `{`+quote(name)+`:`+quote(secret)+",")
		}},
		{name + " in a form", func(s *recording.Exchange, secret string) {
			body(s, "application/x-www-form-urlencoded", url.Values{"summary": {"x"}, name: {secret}}.Encode())
		}},
		{name + " in a form of parts", func(s *recording.Exchange, secret string) { parts(s, name, secret) }},
		{name + " in XML-RPC", func(s *recording.Exchange, secret string) { call(s, name, "<string>"+mark(secret)+"</string>") }},
		{name + " in XML-RPC without a type", func(s *recording.Exchange, secret string) { call(s, name, mark(secret)) }},
		{name + " in XML-RPC, in pieces", func(s *recording.Exchange, secret string) {
			call(s, name, "<struct><member><name>name</name><value>"+mark(secret)+"</value></member><member><name>token</name><value>"+mark(secret)+"</value></member></struct>")
		}},
	}
}

func inHeader(name, before string) func(*recording.Exchange, string) {
	return func(s *recording.Exchange, secret string) {
		s.Request.Headers[http.CanonicalHeaderKey(name)] = before + secret
	}
}

func withQuery(target, name, value string) string {
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	return target + separator + url.QueryEscape(name) + "=" + url.QueryEscape(value)
}

func body(s *recording.Exchange, kind, text string) {
	s.Request.Method, s.Request.Body = http.MethodPost, []byte(text)
	if kind != "" {
		s.Request.Headers["Content-Type"] = kind
	}
}

func parts(s *recording.Exchange, name, secret string) {
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	_ = form.WriteField("summary", "x")
	_ = form.WriteField(name, secret)
	_ = form.Close()
	body(s, form.FormDataContentType(), text.String())
}

func call(s *recording.Exchange, name, value string) {
	s.Request.Path = "/xmlrpc.cgi"
	body(s, "text/xml", `<?xml version='1.0'?>`+"\n<methodCall><methodName>Bug.get</methodName><params><param><value><struct>"+
		"<member><name>ids</name><value><int>1</int></value></member><member><name>"+mark(name)+"</name><value>"+value+
		"</value></member></struct></value></param></params></methodCall>")
}

func mark(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text))
	return out.String()
}

// quote writes a text as a string of JSON.
func quote(text string) string {
	var out strings.Builder
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	_ = to.Encode(text)
	return strings.TrimSpace(out.String())
}

// quoteMore does the same, with escapes where none are needed.
func quoteMore(text string) string {
	out, _ := json.Marshal(text)
	return strings.ReplaceAll(string(out), "/", `\/`)
}

// escapeJSON writes every character as an escape.
func escapeJSON(text string) string {
	out := `"`
	for _, r := range text {
		if r > 0xffff {
			out += string(r)
			continue
		}
		out += fmt.Sprintf(`\u%04x`, r)
	}
	return out + `"`
}

func escapeAll(text string) string {
	out := ""
	for i := range len(text) {
		out += fmt.Sprintf("%%%02x", text[i])
	}
	return out
}

// formKind is the type of forms of pages.
const formKind = "application/x-www-form-urlencoded"

// pageForm sends a form to a page.
func pageForm(target string, fields url.Values) func(*recording.Exchange) {
	return func(s *recording.Exchange) {
		s.Request.Path = target
		body(s, formKind, fields.Encode())
		s.Response.Headers["content-type"] = "text/html; charset=UTF-8"
		s.Response.Body = []byte(`<input type="hidden" name="token" value="` + secret + `">`)
	}
}

// TestPages: nothing is kept of what is sent to pages, nor of what they say, under whatever name it comes.
func TestPages(t *testing.T) {
	escaped := url.QueryEscape(secret)
	for name, c := range map[string]struct {
		change func(*recording.Exchange)
		path   string
	}{
		"a new password": {pageForm("/userprefs.cgi", url.Values{"old_password": {secret}, "new_password1": {secret}, "new_password2": {secret}}), "/userprefs.cgi"},
		"a lost one":     {pageForm("/token.cgi", url.Values{"t": {secret}, "password": {secret}, "matchpassword": {secret}}), "/token.cgi"},
		"an account":     {pageForm("//createaccount.cgi", url.Values{"x": {secret}, "passwd1": {secret}, "passwd2": {secret}}), "//createaccount.cgi"},
		"in parts": {func(s *recording.Exchange) {
			parts(s, "t", secret)
			s.Request.Path = "/rest/../token.cgi"
		}, "/rest/../token.cgi"},
		"in the query":    {func(s *recording.Exchange) { s.Request.Path = "/token.cgi?t=" + escaped + "&a=cfmpw" }, "/token.cgi?removed"},
		"in the path":     {func(s *recording.Exchange) { s.Request.Path = "/token.cgi;t=" + escaped }, "/token.cgi?removed"},
		"of another host": {func(s *recording.Exchange) { s.Request.Path = "http://tracker.example/token.cgi?t=" + escaped }, "/token.cgi?removed"},
		"told in XML": {func(s *recording.Exchange) {
			s.Request.Path, s.Response.Body = "/show_bug.cgi?ctype=xml&id=1", []byte("<bug><token>"+mark(secret)+"</token></bug>")
			s.Response.Headers["content-type"] = "text/xml"
		}, "/show_bug.cgi?removed"},
	} {
		s := seen()
		c.change(&s)
		e := recording.NewRedactor(1 << 10).Redact(s)
		line := written(t, e)
		if how := shows(line, secret); how != "" || strings.Contains(line, "tracker.example") {
			t.Errorf("%s: %q is in %s", name, how, line)
		}
		if e.Request.Path != c.path || e.Request.Body != nil && !digest.Match(e.Request.Body) || e.Unsendable == "" || len(e.Response.Body) > 0 {
			t.Errorf("%s: kept as %s", name, line)
		}
	}
	s := seen()
	s.Request.Path = "/show_bug.cgi"
	if e := recording.NewRedactor(1 << 10).Redact(s); e.Unsendable != "" || e.Request.Path != s.Request.Path {
		t.Errorf("a page that is asked for nothing: %+v", e)
	}
}

// TestRedirects: addresses in answers are those of pages and interfaces, with hosts or without.
func TestRedirects(t *testing.T) {
	for from, want := range map[string]string{
		"http://tracker.example/token.cgi?t=" + secret:      "/token.cgi?removed",
		"//tracker.example/index.cgi?t=" + secret:           "/index.cgi?removed",
		"token.cgi?t=" + secret:                             "token.cgi?removed",
		"https://tracker.example/rest/bug/1?session_id=abc": "/rest/bug/1?session_id={{caller-1}}",
		"/rest/login;access_token=abc/x":                    "/rest/login;access_token={{caller-1}}/x",
		"/rest/bug/1?id=3":                                  "/rest/bug/1?id=3",
	} {
		s := seen()
		s.Response.Headers["location"] = from
		if got := recording.NewRedactor(1 << 10).Redact(s).Response.Headers["location"]; got != want {
			t.Errorf("%s became %s, want %s", from, got, want)
		}
	}
}

// TestShortCredentials: a short password goes from wherever it is the whole value, also before the place by which it is
// known, and nothing else that looks like a part of it goes.
func TestShortCredentials(t *testing.T) {
	const short = "hunter2"
	for name, change := range map[string]func(*recording.Exchange){
		"form": func(s *recording.Exchange) { body(s, formKind, "confirm=hunter2&password=hunter2&again=hunter2") },
		"JSON": func(s *recording.Exchange) {
			body(s, "", `{"confirm":" hunter2","password":"hunter2","list":["hunter2"]}`)
		},
		"query": func(s *recording.Exchange) { s.Request.Path += "?hunter2&confirm=hunter2&password=hunter2" },
		"header": func(s *recording.Exchange) {
			s.Request.Headers["X-Bugzilla-Password"] = short
			s.Request.Path += "?confirm=%68unter2"
		},
		"answer": func(s *recording.Exchange) {
			s.Request.Path += "?password=hunter2"
			s.Response.Body = []byte(`{"confirm":"hunter2"}`)
		},
		"XML": func(s *recording.Exchange) {
			call(s, "password", short)
			s.Request.Body = []byte(strings.ReplaceAll(string(s.Request.Body), "<int>1</int>", "<array><data><value>"+short+"</value><value><string>"+short+"</string></value></data></array>"))
		},
	} {
		s := seen()
		change(&s)
		e := recording.NewRedactor(1 << 10).Redact(s)
		if line := written(t, e); strings.Contains(line, short) || e.Unsendable != "" {
			t.Errorf("%s: unsendable %q, kept as %s", name, e.Unsendable, line)
		}
	}
	s := seen()
	s.Request.Headers["X-Bugzilla-Api-Key"] = "wrong"
	s.Response.Body = []byte(`{"message":"the key is wrong"}`)
	if e := recording.NewRedactor(1 << 10).Redact(s); string(e.Response.Body) != string(s.Response.Body) {
		t.Errorf("a word of a message went: %s", e.Response.Body)
	}
}
