package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"portico/mapping"
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

func genOperation(t *rapid.T) mapping.Operation {
	return rapid.SampledFrom(append(mapping.Operations(), "")).Draw(t, "operation")
}

// TestTwoDocuments: a document is like itself, and two differ both ways or neither, each time in the same way.
func TestTwoDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkPair(t, genOperation(t), []byte(genDocument(t, "one")), []byte(genDocument(t, "two")))
	})
}

// checkPair compares two texts there and back, and each with itself.
func checkPair(t fataler, operation mapping.Operation, one, two []byte) []Difference {
	t.Helper()
	first, second := Reply{Status: 200, Body: one}, Reply{Status: 200, Body: two}
	found := Compare(operation, first, second, Rules{})
	if again := Compare(operation, first, second, Rules{}); !reflect.DeepEqual(found, again) {
		t.Fatalf("once %s, then %s", said(found), said(again))
	}
	if back := Compare(operation, second, first, Rules{}); (len(back) == 0) != (len(found) == 0) {
		t.Fatalf("%q there, %q back", said(found), said(back))
	}
	for _, same := range []Reply{first, second} {
		spaced := same
		if json.Valid(same.Body) {
			spaced.Body = append([]byte(" "), same.Body...)
		}
		if self := Compare(operation, same, spaced, Rules{}); len(self) > 0 {
			t.Fatalf("%s differs from itself: %s", same.Body, said(self))
		}
	}
	return found
}

// fataler is what tests and rapid share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestAnySingleChangeIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := genReply(t)
		if rapid.Bool().Draw(t, "deep") {
			document = genDoc(t, 5)
		}
		operation, before := genOperation(t), document.String()
		document.mutate(t)
		if after := document.String(); len(Compare(operation, ok(before), ok(after), Rules{})) == 0 {
			t.Fatalf("%s: nothing found between %s and %s", operation, before, after)
		}
	})
}

// things are n elements of a list in the given order, with ids from 1.
func things(order []int) string {
	var list []string
	for _, i := range order {
		list = append(list, fmt.Sprintf(`{"id":%d,"name":"n%d","type":"bug","flags":[],"values":["X"]}`, i+1, i%3))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestAPermutationIsOnlyAnOrder(t *testing.T) {
	forms := map[mapping.Operation]struct{ form, path string }{
		mapping.OpFlagTypes:         {`{"bug":%s,"attachment":[]}`, "order $.bug"},
		mapping.OpBugAttachments:    {`{"bugs":{"1":%s},"attachments":{}}`, "order $.bugs[*]"},
		mapping.OpAttachment:        {`{"bugs":{},"attachments":{"1":{"flags":%s}}}`, "order $.attachments[*].flags"},
		mapping.OpUpdateAttachments: {`{"attachments":%s}`, "order $.attachments"},
		mapping.OpUpdateFlagTypes:   {`{"flagtypes":%s}`, ""},
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "n")
		straight := make([]int, n)
		for i := range straight {
			straight[i] = i
		}
		shuffled := rapid.Permutation(straight).Draw(t, "order")
		for operation, form := range forms {
			want := form.path
			if things(shuffled) == things(straight) {
				want = ""
			}
			one, two := fmt.Sprintf(form.form, things(straight)), fmt.Sprintf(form.form, things(shuffled))
			if got := said(Compare(operation, ok(one), ok(two), Rules{})); got != want {
				t.Fatalf("%s of %v: %q, want %q", operation, shuffled, got, want)
			}
		}
	})
}

// FuzzCompare compares any two texts, and holds the result against what another
// reader of JSON makes of them. The corpus is in testdata/fuzz/FuzzCompare.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"bug":[{"id":1,"name":"a"}],"attachment":[]}`), []byte(`{"bug":[{"id":2,"name":"a"}],"attachment":[]}`), byte(0))
	f.Add([]byte(`{"bugs":{"1":[{"id":1,"flags":[]}]},"attachments":{}}`), []byte(`{"bugs":{"1":[{"flags":[],"id":1.0}]},"attachments":{}}`), byte(3))
	f.Add([]byte(`[1,1.0,1e0,-0,"\u00fc"]`), []byte(`[1,1,1,0,"ü"]`), byte(9))
	redactor := NewRedactor()
	f.Fuzz(func(t *testing.T, one, two []byte, which byte) {
		operation := append(mapping.Operations(), "")[int(which)%(len(mapping.Operations())+1)]
		found := checkPair(t, operation, one, two)
		if operation == "" && len(found) == 0 {
			meansTheSame(t, one, two)
		}
		sound(t, redactor, found)
	})
}

// meansTheSame fails when another reader sees a difference.
func meansTheSame(t *testing.T, one, two []byte) {
	t.Helper()
	first, err := readAny(one)
	second, other := readAny(two)
	if err == nil && other == nil && !reflect.DeepEqual(first, second) {
		t.Fatalf("nothing found between %q and %q", one, two)
	}
}

func readAny(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return plainNumbers(value), err
}

// plainNumbers gives equal numbers one form, and texts that differ in an address.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if number, err := v.Float64(); err == nil {
			return number
		}
	case string:
		return string(withoutAddresses([]byte(v)))
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return value
}

// sound checks what must hold of any difference.
func sound(t *testing.T, redactor *Redactor, found []Difference) {
	t.Helper()
	for _, d := range found {
		if !strings.HasPrefix(d.Path, "$") || !strings.HasPrefix(d.Pointer, "$") || d.Want == nil && d.Have == nil || d.Class == "" {
			t.Fatalf("the difference is %+v", d)
		}
		for _, kept := range []jsontext.Value{redactor.Redact(d.Want, d.Path), redactor.Redact(d.HaveIn, d.Place)} {
			if kept != nil && !json.Valid(kept) {
				t.Fatalf("kept is %q", kept)
			}
		}
	}
}
