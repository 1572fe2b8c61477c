package view_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template/parse"

	"portico/proxy/admin/view"
)

// parsed returns the templates of some folders, without knowing their functions.
func parsed(t *testing.T, folders ...fs.FS) trees {
	t.Helper()
	all := trees{}
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
		all := parsed(t, view.Pieces, os.DirFS(folder))
		if err := all.check(); err != nil {
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
		"<p title = \"{{.}}\">", "<noscript>{{.}}</noscript>", "<meta content=\"{{.}}\">", "<a href=\"{{print (url .)}}\">", "<p title=\"{{template \"x\"}}\">{{define \"x\"}}{{.}}{{end}}",
		"<svg><a xlink:href=\"{{.}}\">", "<scr{{if .}}{{end}}ipt>{{.}}", "<", "<p",
	}
	for _, text := range unsafe {
		if parsed(t, fstest.MapFS{"html/x.html": {Data: []byte(text)}}).check() == nil {
			t.Errorf("%s is taken for safe", text)
		}
	}
	safe := []string{
		"<p class=\"a {{.}}\">{{.}}</p>", "<a href=\"/x/{{url .}}?a={{url .}}\">{{.}}</a>", "<textarea>{{.}}</textarea>", "<p {{if .}}hidden{{end}}>{{.}}</p>",
		"<script>if (a < b) {}</script>{{.}}", "<!-- <p> -->{{.}}", "<rect x=\"{{.}}.1\"/>{{.}}", "<p aria-label='{{.}}' data-x=\"{{.}}\">",
	}
	for _, text := range safe {
		if err := parsed(t, fstest.MapFS{"html/x.html": {Data: []byte(text)}}).check(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// state is a place in a page.
type state struct {
	place place
	// element is the element whose tag it is in; in opaque text it is the text that ends that.
	element string
	// attribute is the name of the attribute as far as it was read, and quote ends its value.
	attribute string
	quote     byte
}

// place is a kind of place.
type place int

const (
	inContent place = iota
	inTag           // between attributes
	inName          // of an attribute
	inValue         // of an attribute, in quotes
	opaque          // a comment, or the content of opaqueElements
	unknown         // anything else, such as a value without quotes
)

// opaqueElements have content that is not HTML.
var opaqueElements = []string{"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "xmp"}

// afterBranch stands before the name of an attribute that follows a branch, since the branch may have written a part of it.
const afterBranch = "?"

// plainAttributes take any text. Those with the prefixes aria- and data- do so too.
var plainAttributes = []string{"class", "datetime", "for", "height", "id", "max", "min", "name", "title", "value", "viewbox", "width", "x", "y"}

// guardedAttributes take what the function url has made.
var guardedAttributes = []string{"action", "content", "formaction", "href", "src"}

// trees are templates that may call each other.
type trees map[string]*parse.Tree

// check makes sure that every value is written where html.EscapeString makes it harmless: in the content of elements, in quoted
// attributes that mean nothing but text, and, if the function url has made it, in those that hold a URL. Every branch must end in the place
// where it began.
func (s trees) check() error {
	var all error
	for name, tree := range s {
		end, err := s.walk(tree.Root, state{})
		if err == nil && end.place != inContent {
			err = errors.New("it does not end in the content of an element")
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("template %s: %w", name, err))
		}
	}
	return all
}

// walk returns the state after a node that begins in a state.
func (s trees) walk(node parse.Node, at state) (state, error) {
	switch n := node.(type) {
	case *parse.ListNode:
		var err error
		for _, each := range n.Nodes {
			if at, err = s.walk(each, at); err != nil {
				return at, err
			}
		}
		return at, nil
	case *parse.TextNode:
		return at.after(string(n.Text)), nil
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 || at.takes(n.Pipe) {
			return at, nil
		}
		return at, fmt.Errorf("%s is not safe in %+v", n, at)
	case *parse.IfNode:
		return s.branches(&n.BranchNode, at)
	case *parse.WithNode:
		return s.branches(&n.BranchNode, at)
	case *parse.RangeNode:
		return s.branches(&n.BranchNode, at)
	case *parse.TemplateNode:
		if at.place == inContent && s[n.Name] != nil {
			return at, nil
		}
	}
	return at, fmt.Errorf("%s is not supported here", node)
}

func (s trees) branches(n *parse.BranchNode, at state) (state, error) {
	if at.place == inTag {
		at.attribute = afterBranch
	}
	for _, list := range []*parse.ListNode{n.List, n.ElseList} {
		if list == nil {
			continue
		}
		end, err := s.walk(list, at)
		if err != nil {
			return at, err
		}
		if end.place == inTag || end.place == inName {
			end.place, end.attribute = inTag, afterBranch
		}
		if end != at {
			return at, fmt.Errorf("%s does not end where it begins", n)
		}
	}
	return at, nil
}

// after returns the state after a text. Forms of HTML that the pages do not use lead to unknown.
func (at state) after(text string) state {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case at.place == inContent && c == '<':
			at, i = open(text, i)
		case at.place == opaque && strings.HasPrefix(strings.ToLower(text[i:]), at.element):
			i += len(at.element) - 1
			if at = (state{place: inTag}); c != '<' {
				at = state{}
			}
		case at.place == inValue && c == at.quote:
			at = state{place: inTag, element: at.element}
		case at.place == inTag || at.place == inName:
			at, i = at.inside(text, i)
		}
	}
	return at
}

// open returns the state after the beginning of a tag or a comment at text[i], and where that ends.
func open(text string, i int) (state, int) {
	rest := text[i+1:]
	name := strings.ToLower(strings.TrimPrefix(rest, "/"))
	if end := strings.IndexAny(name, " \t\r\n/>"); end >= 0 {
		name = name[:end]
	} else if !strings.HasPrefix(rest, "!") {
		return state{place: unknown}, i
	}
	switch {
	case strings.HasPrefix(rest, "!--"):
		return state{place: opaque, element: "-->"}, i + 3
	case strings.HasPrefix(rest, "!"):
		return state{place: opaque, element: ">"}, i
	case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "":
		return state{place: unknown}, i
	case rest[0] == '/':
		return state{place: inTag}, i + 1 + len(name)
	}
	return state{place: inTag, element: name}, i + len(name)
}

// inside returns the state after text[i] in a tag, outside of values.
func (at state) inside(text string, i int) (state, int) {
	c := text[i]
	switch {
	case c == '>' && slices.Contains(opaqueElements, at.element):
		return state{place: opaque, element: "</" + at.element}, i
	case c == '>':
		return state{}, i
	case strings.IndexByte(" \t\r\n/", c) >= 0:
		return state{place: inTag, element: at.element}, i
	case c != '=':
		at.place, at.attribute = inName, at.attribute+strings.ToLower(text[i:i+1])
		return at, i
	case at.place == inName && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\''):
		at.place, at.quote = inValue, text[i+1]
		return at, i + 1
	}
	return state{place: unknown}, i
}

// takes reports whether the value of a pipeline is safe.
func (at state) takes(pipe *parse.PipeNode) bool {
	switch {
	case at.place == inContent:
		return true
	case at.place != inValue:
		return false
	case slices.Contains(guardedAttributes, at.attribute):
		return pipe.Cmds[len(pipe.Cmds)-1].Args[0].String() == "url"
	}
	return slices.Contains(plainAttributes, at.attribute) || strings.HasPrefix(at.attribute, "aria-") || strings.HasPrefix(at.attribute, "data-")
}
