package compare

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// doc is a JSON value that can be changed in one place.
type doc struct {
	// text is a scalar as written; names and kids are of an object, kids alone of an array.
	text  string
	names []string
	kids  []*doc
	kind  byte
}

var genNames = []string{
	"id", "name", "type", "flags", "data", "values", "bugs", "attachments", "bug", "attachment", "inclusions",
	"flagtypes", "changes", "summary", "status", "7", "8", "odd name",
}

var genScalars = []string{
	"null", "true", "false", "0", "1", "1.0", "-0", "2e3", "2000", "12345678901234567890", "12345678901234567891", `""`,
	`"X"`, `"?"`, `"1"`, `"2020-01-02T03:04:05Z"`, `"2021-01-02T03:04:05Z"`, `"dGV4dA=="`, `"\u00fc"`, `"ü"`,
	`"Hidden words here"`, `"who@example.com"`, `"日本 secret"`,
}

// genDoc draws a value, such as parts of replies are, of at most a depth.
func genDoc(t *rapid.T, depth int) *doc {
	switch kind := rapid.IntRange(0, 2+2*min(depth, 1)).Draw(t, "kind"); kind {
	case 3:
		d := &doc{kind: '['}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			d.kids = append(d.kids, genDoc(t, depth-1))
		}
		return d
	case 4:
		d := &doc{kind: '{', names: rapid.SliceOfNDistinct(rapid.SampledFrom(genNames), 0, 5, rapid.ID).Draw(t, "names")}
		for range d.names {
			d.kids = append(d.kids, genDoc(t, depth-1))
		}
		return d
	default:
		return &doc{kind: 's', text: rapid.SampledFrom(genScalars).Draw(t, "scalar")}
	}
}

// genReply draws a document that has the outer form of a reply.
func genReply(t *rapid.T) *doc {
	d := &doc{kind: '{', names: []string{rapid.SampledFrom(genNames).Draw(t, "outer"), "other"}}
	list := &doc{kind: '['}
	for range rapid.IntRange(0, 5).Draw(t, "elements") {
		list.kids = append(list.kids, genDoc(t, 3))
	}
	d.kids = []*doc{list, genDoc(t, 2)}
	return d
}

func genDocument(t *rapid.T, label string) string {
	if rapid.Bool().Draw(t, label+" like a reply") {
		return genReply(t).String()
	}
	return genDoc(t, 5).String()
}

// String is the JSON text.
func (d *doc) String() string {
	var parts []string
	for i, kid := range d.kids {
		if d.kind == '{' {
			parts = append(parts, fmt.Sprintf("%s:%s", quote(d.names[i]), kid))
			continue
		}
		parts = append(parts, kid.String())
	}
	switch d.kind {
	case '{':
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		return "[" + strings.Join(parts, ",") + "]"
	}
	return d.text
}

// all gives the value and everything in it.
func (d *doc) all() []*doc {
	list := []*doc{d}
	for _, kid := range d.kids {
		list = append(list, kid.all()...)
	}
	return list
}

// mutate changes the document in one place, so that it means something else.
func (d *doc) mutate(t *rapid.T) {
	at := rapid.SampledFrom(d.all()).Draw(t, "place")
	what := rapid.SampledFrom([]string{"replace", "drop", "add", "rename"}).Draw(t, "change")
	n := len(at.kids)
	switch {
	case what == "drop" && n > 0:
		i := rapid.IntRange(0, n-1).Draw(t, "dropped")
		at.kids = append(at.kids[:i:i], at.kids[i+1:]...)
		if at.kind == '{' {
			at.names = append(at.names[:i:i], at.names[i+1:]...)
		}
	case what == "add" && at.kind == '[':
		i := rapid.IntRange(0, n).Draw(t, "added")
		at.kids = append(at.kids[:i:i], append([]*doc{{kind: 's', text: `"new"`}}, at.kids[i:]...)...)
	case what == "add" && at.kind == '{':
		at.names, at.kids = append(at.names, "new"), append(at.kids, &doc{kind: 's', text: "null"})
	case what == "rename" && at.kind == '{' && n > 0:
		at.names[rapid.IntRange(0, n-1).Draw(t, "renamed")] = "renamed"
	default:
		*at = doc{kind: 's', text: rapid.SampledFrom([]string{`"replaced"`, "99", "-1.5"}).Draw(t, "replacement")}
	}
}
