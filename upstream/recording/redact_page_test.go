package recording_test

import (
	"net/url"
	"strings"
	"testing"

	"portico/upstream/recording"
)

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
