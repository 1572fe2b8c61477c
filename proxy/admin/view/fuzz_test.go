package view_test

import (
	"bytes"
	"html"
	"html/template"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"portico/proxy/admin/view"
)

// everywhere writes a value in each kind of place that the pages have. The functions are those of view and of the oracle.
const everywhere = `<title>{{.}}</title><p class="a {{.}}" data-x='{{.}}' title="{{.}}">{{.}}</p><textarea>{{.}}</textarea><rect x="{{.}}.1"/>` +
	`<a href="/x/{{url .}}">{{if .}}{{.}}{{else}}–{{end}}</a><i>{{with .}}{{.}}{{end}}</i>`

// FuzzEscaping compares what values become with html/template.
func FuzzEscaping(f *testing.F) {
	for _, seed := range []string{"", "a", "<script>alert(1)</script>", `" onclick="x`, `' x='`, "&amp;", "javascript:alert(1)", "//host", "/\\host", "\u2028`${x}", "https://x/?a=<b>", "\xff\xfe", "-->", "</textarea>"} {
		f.Add(seed)
	}
	set := view.New(fstest.MapFS{"html/x.html": {Data: []byte(everywhere)}}, nil)
	oracle := template.Must(template.New("x").Funcs(template.FuncMap{"url": func(text string) template.URL { return template.URL(view.URL(text)) }}).Parse(everywhere))
	f.Fuzz(func(t *testing.T, value string) {
		if strings.Contains(value, "\x00") {
			t.Skip("the oracle replaces it, which is no matter of safety")
		}
		var ours, theirs bytes.Buffer
		if err := set.Execute(&ours, "x.html", value); err != nil {
			t.Fatal(err)
		}
		if err := oracle.Execute(&theirs, value); err != nil {
			t.Fatal(err)
		}
		for _, quote := range []string{"<", ">", `"`, "'"} {
			if a, b := strings.Count(ours.String(), quote), strings.Count(theirs.String(), quote); a != b {
				t.Errorf("%d of %s, html/template has %d\n%s\n%s", a, quote, b, &ours, &theirs)
			}
		}
		ourText, _, _ := strings.Cut(html.UnescapeString(ours.String()), "<a href")
		theirText, _, _ := strings.Cut(html.UnescapeString(theirs.String()), "<a href")
		if ourText != theirText {
			t.Errorf("the text is\n%q\nand that of html/template\n%q", ourText, theirText)
		}
		checkURL(t, value)
	})
}

// checkURL checks that a value as a URL runs nothing, and leads elsewhere only if it says so.
func checkURL(t *testing.T, value string) {
	t.Helper()
	text := view.URL(value)
	page, _ := url.Parse("http://portico.example/canary")
	link, err := page.Parse(text)
	switch {
	case err != nil:
		return // browsers may still follow it; the scheme is what it begins with
	case link.Scheme != "http" && link.Scheme != "https":
		t.Errorf("%q becomes %q, of scheme %q", value, text, link.Scheme)
	case link.Host != page.Host && !strings.HasPrefix(value, "http://") && !strings.HasPrefix(value, "https://"):
		t.Errorf("%q becomes %q, which leads to %q", value, text, link.Host)
	}
}
