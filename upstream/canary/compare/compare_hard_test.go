package compare

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// split takes a body apart as a capture does.
func split(t testing.TB, body string) Reply {
	t.Helper()
	text, blobs, err := jsonblob.Split(nil, strings.NewReader(body), jsonblob.SplitOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer jsonblob.CloseBlobs(blobs)
	kept, err := Body(text, blobs)
	if err != nil {
		t.Fatal(err)
	}
	return ok(string(kept))
}

// attachmentsWith is a reply with two attachments of the given contents, in JSON.
func attachmentsWith(first, second string) string {
	return fmt.Sprintf(`{"bugs":{"1":[{"id":1,"data":%s,"size":1},{"id":2,"data":%s}]},"attachments":{}}`, first, second)
}

// encoded is a JSON string with content of a size, which ends in last.
func encoded(size int, last string) string {
	return `"` + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("0123456789", size/10)+last)) + `"`
}

func TestContentIsComparedByDigest(t *testing.T) {
	small, other := `"aGVsbG8="`, `"aGVsbG9v"`
	large, changed := encoded(100<<10, ""), encoded(100<<10, "!")
	const at = "digest $.bugs[*][id].data"
	for name, test := range map[string]struct{ one, two, want string }{
		"equal":         {attachmentsWith(small, large), attachmentsWith(small, large), ""},
		"one byte more": {attachmentsWith(small, large), attachmentsWith(small, changed), at},
		"a megabyte":    {attachmentsWith(small, encoded(1<<20, "a")), attachmentsWith(small, encoded(1<<20, "b")), at},
		"swapped":       {attachmentsWith(small, large), attachmentsWith(large, small), at + "\n" + at},
		"small":         {attachmentsWith(small, large), attachmentsWith(other, large), at},
		"null":          {attachmentsWith(small, large), attachmentsWith("null", large), "null $.bugs[*][id].data"},
		"a number":      {attachmentsWith(small, large), attachmentsWith("7", large), "type $.bugs[*][id].data"},
		"not base64":    {attachmentsWith(small, large), attachmentsWith(`"hello"`, large), at},
		"order of attachments": {
			attachmentsWith(small, large),
			fmt.Sprintf(`{"bugs":{"1":[{"id":2,"data":%s},{"id":1,"data":%s,"size":1}]},"attachments":{}}`, large, small), "order $.bugs[*]",
		},
	} {
		for how, capture := range map[string]func(string) Reply{"inline": ok, "aside": func(body string) Reply { return split(t, body) }} {
			found := Compare(mapping.OpBugAttachments, capture(test.one), capture(test.two), Rules{})
			if got := said(found); got != test.want {
				t.Errorf("%s, %s: found %q, want %q", name, how, got, test.want)
			}
			for _, d := range found {
				if d.Class == ClassDigest && (!strings.HasPrefix(string(d.Want), `{"size":`) || !strings.HasPrefix(string(d.Have), `{"size":`)) {
					t.Errorf("%s: %.80s and %.80s show content", name, d.Want, d.Have)
				}
			}
		}
	}
}

func TestAnswersBeyondTheCapAreComparedByDigest(t *testing.T) {
	whole := func(text string) Reply {
		return Reply{Status: 200, Body: jsontext.Value(text), Long: true}
	}
	for name, test := range map[string]struct {
		one, two Reply
		want     string
	}{
		"equal":      {whole("[1]"), whole("[1]"), ""},
		"spaced":     {whole("[1,2]"), whole("[1, 2]"), ""},
		"different":  {whole("[1]"), whole("[2]"), "digest $"},
		"one beyond": {whole("[1]"), ok("{}"), "digest $"},
		"in order":   {whole(`{"a":1,"b":2}`), ok(`{"b":2,"a":1}`), ""},
		"no body":    {Reply{Status: 200}, ok("{}"), "extra $"},
		"no bodies":  {Reply{Status: 200}, Reply{Status: 200}, ""},
		"no JSON":    {ok("<html>"), ok("{}"), "digest $"},
		"both HTML":  {ok("<html>"), ok("<html>"), ""},
		"cut off":    {ok(`{"bug":[`), ok(`{"bug":[]}`), "digest $"},
		"two values": {ok(`{} {}`), ok(`{}`), "digest $"},
	} {
		if got := said(Compare(mapping.OpFlagTypes, test.one, test.two, Rules{})); got != test.want {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

func TestDuplicatesHideNothing(t *testing.T) {
	list := func(items ...string) Reply {
		return ok(`{"bug":[` + strings.Join(items, ",") + `],"attachment":[]}`)
	}
	one, two, three := `{"id":7,"name":"a","type":"bug"}`, `{"id":7,"name":"b","type":"bug"}`, `{"id":7,"name":"c","type":"bug"}`
	for name, test := range map[string]struct {
		want, have Reply
		found      string
	}{
		"equal":          {list(one, two), list(one, two), ""},
		"swapped":        {list(one, two), list(two, one), "order $.bug"},
		"one changed":    {list(one, two), list(one, three), "value $.bug[id].name"},
		"swapped too":    {list(one, two), list(three, one), "value $.bug[id].name\norder $.bug"},
		"both changed":   {list(one, two), list(three, three), "value $.bug[id].name\nvalue $.bug[id].name"},
		"one gone":       {list(one, two), list(two), "missing $.bug[id]"},
		"one twice":      {list(one), list(one, one), "extra $.bug[id]"},
		"no ids":         {list(`{"name":"a"}`), list(`{"name":"b"}`), "value $.bug[*].name"},
		"no objects":     {list(`1`, `2`), list(`1`, `3`), "value $.bug[*]"},
		"an odd one":     {list(one, `5`), list(one, `"5"`), "type $.bug[*]"},
		"other ids":      {list(one), list(`{"id":8,"name":"a","type":"bug"}`), "value $.bug[name,type].id"},
		"other names":    {list(one), list(`{"id":8,"name":"b","type":"bug"}`), "missing $.bug[id]\nextra $.bug[id]"},
		"id of a string": {list(one), list(`{"id":"7","name":"a","type":"bug"}`), "type $.bug[id].id"},
	} {
		if got := said(Compare(mapping.OpFlagTypes, test.want, test.have, Rules{})); got != test.found {
			t.Errorf("%s: found %q, want %q", name, got, test.found)
		}
	}
	with, lacking := ok(`{"bugs":{"1":[{"id":1},{"id":2,"x":3}]}}`), ok(`{"bugs":{"1":[{"id":1},{"x":3}]}}`)
	if got := said(Compare(mapping.OpBugAttachments, with, lacking, Rules{})); got != "missing $.bugs[*][id].id" {
		t.Errorf("an id that is gone: %q", got)
	}
	if got := said(Compare(mapping.OpBugAttachments, lacking, with, Rules{})); got != "extra $.bugs[*][id].id" {
		t.Errorf("an id that is new: %q", got)
	}
	for have, want := range map[string]string{`{"a":1,"a":2}`: "extra $.a", `{"a":1,"a":1}`: "extra $.a", `{"a":2,"a":1}`: "value $.a\nextra $.a"} {
		if got := said(Compare("", ok(`{"a":1}`), ok(have), Rules{})); got != want {
			t.Errorf("a name twice: %q", got)
		}
	}
}

func TestNumbersAreExact(t *testing.T) {
	for _, test := range []struct{ one, two, want string }{
		{"1", "1", ""}, {"1", "1.0", "type $"}, {"1", "1e0", "type $"}, {"100", "1E+2", "type $"}, {"1.0", "1.00", ""}, {"0", "-0", ""},
		{"12345678901234567890", "12345678901234567891", "value $"}, {"0.1", "0.10000000000000001", ""}, {"0.1", "0.1000000000000001", "value $"},
		{"1e400", "1e401", "value $"}, {"1e400", "1e400", ""}, {"0.0", "-0.0", ""}, {"1e99999999999999999999", "1e99999999999999999998", "value $"},
		{"-1", "1", "value $"}, {"1", `"1"`, "type $"}, {"0", "false", "type $"}, {"1", "null", "null $"},
		{"1e" + strings.Repeat("9", 40), "1e" + strings.Repeat("9", 41), "value $"},
	} {
		if got := said(Compare("", ok(test.one), ok(test.two), Rules{})); got != test.want {
			t.Errorf("%s and %s: %q, want %q", test.one, test.two, got, test.want)
		}
	}
}

func TestPointersSayWhere(t *testing.T) {
	one := ok(`{"bugs":{"5":[{"id":7,"flags":[{"id":12,"status":"?"}],"x":[1,2,3]}]},"attachments":{}}`)
	two := ok(`{"bugs":{"5":[{"id":7,"flags":[{"id":12,"status":"+"}],"x":[1,4,3]}]},"attachments":{}}`)
	found := Compare(mapping.OpBugAttachments, one, two, Rules{})
	if len(found) != 2 || found[0].Pointer != "$.bugs[5][7].flags[12].status" || found[1].Pointer != "$.bugs[5][7].x[1]" {
		t.Errorf("the places are %+v", found)
	}
	d := found[0]
	if d.Place != "$.bugs[*][id]" || !strings.HasPrefix(string(d.WantIn), `{"id":7`) || string(d.Want) != `"?"` || string(d.Have) != `"+"` {
		t.Errorf("the difference is %+v", d)
	}
	if a, b := d.Signature(mapping.OpBugAttachments), d.Signature(mapping.OpAttachment); a == b || len(a) != 16 {
		t.Errorf("the signatures are %s and %s", a, b)
	}
	gone := d
	if gone.Unstable = true; gone.Signature("") == d.Signature("") {
		t.Error("a difference that is gone has the signature of one that is not")
	}
}

func TestDeepAndWideBodiesAreBounded(t *testing.T) {
	deep := func(inside string) Reply {
		return ok(strings.Repeat("[", 9000) + inside + strings.Repeat("]", 9000))
	}
	if found := Compare("", deep("1"), deep("2"), Rules{}); len(found) != 1 || !strings.HasSuffix(found[0].Path, deepSegment) || len(found[0].Path) > 400 || len(found[0].Pointer) > 400 {
		t.Errorf("deep inside found %.300s", said(found))
	}
	if found := Compare("", deep("1"), deep("2"), Rules{}); found[0].Want.Kind() != '[' {
		t.Errorf("what is deeper than a path says is taken apart: %s", found[0].Want)
	}
	if found := Compare("", deep("1"), deep("1"), Rules{}); len(found) != 0 {
		t.Errorf("nothing deep inside is %.300s", said(found))
	}
	if found := Compare("", ok(strings.Repeat("[", 20000)), ok("["), Rules{}); said(found) != "digest $" {
		t.Errorf("too deep found %.300s", said(found))
	}
	var names, others strings.Builder
	for i := range maxFound/2 + 1 { // each is missing and another one extra
		fmt.Fprintf(&names, `"n%d":1,`, i)
		fmt.Fprintf(&others, `"m%d":1,`, i)
	}
	found := Compare("", ok("{"+names.String()+`"z":1}`), ok("{"+others.String()+`"z":1}`), Rules{})
	if len(found) != maxFound || found[maxFound-1].Class != ClassDigest {
		t.Errorf("%d differences, the last %+v", len(found), found[len(found)-1].Class)
	}
}

func TestManyAlikeDoNotHideWhatARuleDoesNotExcuse(t *testing.T) {
	var one, two strings.Builder
	for i := range 500 {
		fmt.Fprintf(&one, `{"id":%d,"on":1},`, i)
		fmt.Fprintf(&two, `{"id":%d,"on":%v},`, i, i != 499)
	}
	rules := rulesOf(t, Equivalence{Type: IntAsBool, Path: "$.bug[id].on"})
	found := Compare(mapping.OpFlagTypes, ok(`{"bug":[`+one.String()+`1]}`), ok(`{"bug":[`+two.String()+`1]}`), rules)
	if len(found) != 500 || found[499].Rule != "" || found[0].Rule == "" {
		t.Errorf("%d differences", len(found))
	}
}
