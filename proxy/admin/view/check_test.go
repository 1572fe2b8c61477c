package view_test

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io"
	"io/fs"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template/parse"
	"time"

	"portico/proxy/admin/view"
)

// parsed returns the templates of some folders, without knowing their functions.
func parsed(t *testing.T, folders ...fs.FS) map[string]*parse.Tree {
	t.Helper()
	all := map[string]*parse.Tree{}
	for _, folder := range folders {
		paths, err := fs.Glob(folder, "html/*.html")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no templates: %v", err)
		}
		for _, path := range paths {
			text, err := fs.ReadFile(folder, path)
			if err != nil {
				t.Fatal(err)
			}
			tree := parse.New(path)
			tree.Mode = parse.SkipFuncCheck
			if _, err := tree.Parse(string(text), "", "", all); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// Every value that a page of the program writes is in a place where its escaping makes it harmless.
func TestTemplatesWriteValuesWhereEscapingHelps(t *testing.T) {
	for _, folder := range []string{"..", "../pages", "../../../test/demo"} {
		if err := check(t, view.Pieces, os.DirFS(folder)); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

func TestUnsafeTemplatesAreFound(t *testing.T) {
	unsafe := []string{
		"<p class={{.}}>", "<p {{.}}>", "<p {{.}}=\"x\">", "<{{.}}>", "<a href=\"{{.}}\">", "<a href=\"/x/{{.}}\">", "<img src='{{.}}'>",
		"<form action=\"{{.}}\">", "<p onclick=\"{{.}}\">", "<p OnClick=\"{{.}}\">", "<p style=\"{{.}}\">", "<iframe srcdoc=\"{{.}}\">",
		"<script>{{.}}</script>", "<STYLE>{{.}}</STYLE>", "<!-- {{.}} -->", "<!doctype {{.}}>", "<p class=\"a\" on{{if .}}click{{end}}=\"{{.}}\">",
		"<p {{if .}}on{{end}}title=\"{{.}}\">", "<a{{if .}} class=\"{{end}}\">", "{{if .}}<script>{{end}}{{.}}", "{{range .}}<p class=\"{{end}}", "<p title=\"{{.}}",
		"<meta content=\"{{.}}\">", "<a href=\"{{print (url .)}}\">", "<svg><a xlink:href=\"{{.}}\">", "<scr{{if .}}{{end}}ipt>{{.}}", "<", "<p",
	}
	for _, text := range unsafe {
		if check(t, fstest.MapFS{"html/x.html": {Data: []byte(text)}}) == nil {
			t.Errorf("%s is taken for safe", text)
		}
	}
	safe := []string{
		"<p class=\"a {{.}}\">{{.}}</p>", "<a href=\"/x/{{url .}}?a={{url .}}\">{{.}}</a>", "<textarea>{{.}}</textarea>", "<p {{if .}}hidden{{end}}>{{.}}</p>",
		"<script>if (a < b) {}</script>{{.}}", "<rect x=\"{{.}}.1\"/>{{.}}", "<p aria-label='{{.}}' data-x=\"{{.}}\">",
	}
	for _, text := range safe {
		if err := check(t, fstest.MapFS{"html/x.html": {Data: []byte(text)}}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// check makes sure that html/template, which knows the places of HTML, would escape each value for text or for a quoted attribute only, or for a URL
// where the function url has made it. What html/template would change of the text itself, such as a stray <, is not safe either.
func check(t *testing.T, folders ...fs.FS) error {
	t.Helper()
	set, texts := template.New(""), walk(parsed(t, folders...), nil)
	trees := parsed(t, folders...)
	for name, tree := range trees {
		if _, err := set.AddParseTree(name, tree); err != nil {
			return err
		}
	}
	for name := range trees {
		var wrong *template.Error // any other one is of the execution, which lacks data
		if err := set.ExecuteTemplate(io.Discard, name, nil); errors.As(err, &wrong) {
			return err
		}
	}
	var unsafe error
	escaped := walk(trees, func(pipe *parse.PipeNode) {
		if len(pipe.Decl) == 0 && !harmless(pipe) {
			unsafe = errors.Join(unsafe, fmt.Errorf("%s is not safe", pipe))
		}
	})
	if !slices.Equal(texts, escaped) || slices.ContainsFunc(texts, inName.MatchString) || notEscaped.MatchString(strings.Join(texts, "")) {
		return errors.Join(unsafe, errors.New("the text itself is not safe"))
	}
	return unsafe
}

// What html/template takes for safe: a tag whose name a branch goes on with, and values in declarations and in two attributes.
var (
	inName     = regexp.MustCompile(`<[/\w]*$`)
	notEscaped = regexp.MustCompile(`(?i)(<!|\b(content|srcdoc)\s*=)[^>]*\x00`)
)

// harmless reports whether html/template has added escapers to a pipeline that amount to html.EscapeString, and for a URL the function url.
func harmless(pipe *parse.PipeNode) bool {
	var escapers []string
	last := ""
	for _, command := range pipe.Cmds {
		if name, added := strings.CutPrefix(command.Args[0].String(), "_html_template_"); added {
			escapers = append(escapers, name)
		} else {
			last = command.Args[0].String()
		}
	}
	switch strings.Join(escapers, " ") {
	case "htmlescaper", "attrescaper", "rcdataescaper":
		return true
	case "urlfilter urlnormalizer attrescaper", "urlnormalizer attrescaper", "urlescaper attrescaper":
		return last == "url"
	}
	return false
}

// walk returns the texts of templates in order, with a NUL for each value, and calls a function for each value.
func walk(trees map[string]*parse.Tree, each func(*parse.PipeNode)) (texts []string) {
	var lists func(nodes ...*parse.ListNode)
	lists = func(nodes ...*parse.ListNode) {
		for _, list := range nodes {
			if list == nil {
				continue
			}
			for _, node := range list.Nodes {
				switch n := node.(type) {
				case *parse.TextNode:
					texts = append(texts, string(n.Text))
				case *parse.ActionNode:
					texts = append(texts, "\x00")
					if each != nil {
						each(n.Pipe)
					}
				case *parse.IfNode:
					lists(n.List, n.ElseList)
				case *parse.WithNode:
					lists(n.List, n.ElseList)
				case *parse.RangeNode:
					lists(n.List, n.ElseList)
				}
			}
		}
	}
	names := make([]string, 0, len(trees))
	for name := range trees {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lists(trees[name].Root)
	}
	return texts
}

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
			t.Skip("html/template replaces NUL, and Portico keeps it: neither ends a value")
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

func TestNumbersInWords(t *testing.T) {
	for got, want := range map[string]string{
		view.Count(0): "0", view.Count(999): "999", view.Count(1000): "1,000", view.Count(-1234567): "-1,234,567",
		view.Rate(0.0123): "0.0123 /s", view.Rate(999.4): "999 /s", view.Rate(999.6): "1,000 /s", view.Rate(123456): "123,456 /s",
		view.Share(0): "0 %", view.Share(1): "100 %", view.Share(0.001): "0.1 %", view.Share(0.0106394): "1.06 %",
		view.Share(0.000138): "0.0138 %", view.Share(0.00999999): "1 %", view.Share(0.5): "50 %",
		view.Duration(0): "–", view.Duration(8400 * time.Microsecond): "8.4 ms", view.Duration(999 * time.Nanosecond): "0.999 µs",
		view.Duration(2 * time.Minute): "120 s", view.Duration(1500 * time.Microsecond): "1.5 ms",
		view.Span(.001): "1 s", view.Span(90): "90 s", view.Span(600): "10 min", view.Span(90 * 60): "90 min", view.Span(26 * 3600): "26 h", view.Span(72 * 3600): "3 days",
		view.At(time.Time{}): "never", view.At(time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))): "2030-01-02 02:04:05",
		view.URL("/canary?x=1"): "/canary?x=1", view.URL("https://tickets.example/1"): "https://tickets.example/1", view.URL("#a b"): "%23a%20b",
		view.URL("javascript:alert(1)"): "javascript%3Aalert%281%29", view.URL("//host/x"): "%2F%2Fhost%2Fx", view.URL(`/\host`): "%2F%5Chost",
		view.URL(5): "5",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestChart(t *testing.T) {
	got := view.NewChart("Reads", "now", 4, 10, func(f float64) string { return fmt.Sprint(f) }, []float64{1, 0, 200}, []float64{50})
	want := view.Chart{
		Title: "Reads", Now: "now", Max: "200", Width: 4,
		Layers: [][]view.Bar{{{X: 1, Top: 97, Height: 3}, {X: 3, Top: 0, Height: 100}}, {{X: 3, Top: 75, Height: 25}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What text/template does that the pages do not show.
func TestExecute(t *testing.T) {
	type data = map[string]any
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"{{.missing}}":                                         "",
		"{{machine .at}}":                                      "2030-01-02T02:04:05Z",
		"{{if .zero}}a{{else}}b{{end}}":                        "b",
		"{{with .at}}{{at .}}{{end}}":                          "2030-01-02 02:04:05",
		"{{with .zero}}a{{else}}{{.n}}{{end}}":                 "7",
		"{{range $i, $x := .list}}{{$i}}{{$x}}{{$.n}} {{end}}": "0x7 1y7 ",
	} {
		var out bytes.Buffer
		set := view.New(fstest.MapFS{"html/x.html": {Data: []byte(text)}}, nil)
		if err := set.Execute(&out, "x.html", data{"at": at, "zero": time.Time{}, "n": 7, "list": []string{"x", "y"}}); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v, want %q", text, &out, err, want)
		}
	}
	if set := view.New(fstest.MapFS{"html/x.html": {Data: []byte("{{.F}}")}}, nil); set.Execute(&bytes.Buffer{}, "x.html", struct{}{}) == nil {
		t.Error("a field that there is not is no error")
	}
}
