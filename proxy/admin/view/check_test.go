package view_test

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template/parse"

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
