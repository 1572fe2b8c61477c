package compare

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"portico/mapping"
)

// digestOf is that of a text, as a whole response has it.
func digestOf(text string) string { return digestIn(unknownShape, text) }

func digestIn(shape *Shape, text string) string {
	c := &comparison{}
	if n := parse(jsontext.Value(text)); n != nil {
		return c.digest(n.raw, shape)
	}
	return "no JSON: " + text
}

// TestDigest: the order of members and the spelling mean nothing, everything else does.
func TestDigest(t *testing.T) {
	const text = `{"a":"x\"/\u00e9😀","b":[1,2,{"c":null,"d":true},{"c":1,"d":2}]}`
	for _, other := range []string{
		`{"b":[1,2,{"d":true,"c":null},{"d":2,"c":1}],"a":"x\"/é😀"}`,
		" { \"\\u0061\" : \"x\\u0022\\/é\\ud83d\\uDE00\",\n\"b\":[1,\t2 ,{\"c\":null,\"d\":true},{\"c\":1,\"d\":2 }]}\r\n",
	} {
		if digestOf(text) != digestOf(other) {
			t.Errorf("%s and %s have different digests", text, other)
		}
	}
	seen := map[string]string{digestOf(text): text}
	for _, other := range []string{
		// Swapped between objects, reordered, and moved in or out.
		`{"a":"x\"/é😀","b":[1,2,{"c":1,"d":true},{"c":null,"d":2}]}`, `{"a":"x\"/é😀","b":[2,1,{"c":null,"d":true},{"c":1,"d":2}]}`,
		`{"a":"x\"/é😀","b":[1,2,{"c":1,"d":2},{"c":null,"d":true}]}`, `{"b":"x\"/é😀","a":[1,2,{"c":null,"d":true},{"c":1,"d":2}]}`,
		`{"a":"x\"/é😀","b":[1,[2,{"c":null,"d":true},{"c":1,"d":2}]]}`, `{"a":"x\"/é😀","b":[1,2,{"c":null,"d":true,"c":1,"d":2}]}`,
		`{"a":"x\"/é😀","b":[1,2,{"c":null},{"c":1,"d":2}]}`, `[{"a":"x\"/é😀","b":[1,2,{"c":null,"d":true},{"c":1,"d":2}]}]`,
		// Other scalars.
		`{"a":"x\"/é😀","b":["1",2,{"c":null,"d":true},{"c":1,"d":2}]}`, `{"a":"x\"/é😀","b":[12,{"c":null,"d":true},{"c":1,"d":2}]}`,
		`{"a":"x\" /é😀","b":[1,2,{"c":null,"d":true},{"c":1,"d":2}]}`, `{"a":"x\"/e😀","b":[1,2,{"c":null,"d":true},{"c":1,"d":2}]}`,
		`{"a":"x\"/é😀","b":[1,2,{"c":"null","d":true},{"c":1,"d":2}]}`,
		// No JSON, or not to its end.
		text[:len(text)-1], text[:len(text)-2], text + text, text + "]", text + `"`, `"`, `"\`, `"\u12`, ``, `{`, `[`, `[1 2]`, `[1,2]`, `[12]`, `[1,,2]`, `[1,]`, `{"a"}`, `{"a":}`,
		`{"a":1]`, `[1}`, `{]`, `"\ud83d"`, `"\ude00"`, `"\ufffd"`, `"\ud83d\ud83d"`, `"\x"`, `"\u12g4"`, `"x"`, `<html>`,
	} {
		if before, known := seen[digestOf(other)]; known {
			t.Errorf("%s and %s have the same digest", before, other)
		}
		seen[digestOf(other)] = other
	}
}

// TestDigestOfNumbers: they are the same where they are the same member by member.
func TestDigestOfNumbers(t *testing.T) {
	same := [][]string{
		{"0", "-0"}, {"1"}, {"-1"}, {"1.0", "1e0", "10E-1", "1.00"}, {"0.0", "-0.0", "0e7"}, {"150"}, {"1.5e2", "150.0", "1.50E+2"}, {"15e-1", "1.5"},
		{"1" + strings.Repeat("0", 100)}, {"-1.5"}, {"1.5e"}, {"1.5ee1"}, {"01.5"}, {".15e1"}, {"tru"}, {"true"}, {`"1.5"`}, {`".15e-1"`},
	}
	seen := map[string]int{}
	for i, list := range same {
		for _, number := range list {
			digest := digestOf(`{"a":[` + number + `,1]}`)
			if before, known := seen[digest]; known && before != i {
				t.Errorf("%s is the same as %s", number, same[before])
			}
			if seen[digest] = i; digest != digestOf(`{"a":[`+list[0]+`,1]}`) {
				t.Errorf("%s is another number than %s", number, list[0])
			}
		}
	}
}

// TestDigestOfSets: where the order of a list means nothing for the comparison, it means nothing for the digest.
func TestDigestOfSets(t *testing.T) {
	shape := shapeOf(mapping.OpFlagTypes)
	text := func(bug, inclusions string) string {
		return fmt.Sprintf(`{"bug":[%s],"attachment":[{"inclusions":[%s]}]}`, bug, inclusions)
	}
	if digestIn(shape, text("1,2", `"a","b"`)) != digestIn(shape, text("1,2", `"b","a"`)) {
		t.Error("components count in their order")
	}
	for _, other := range []string{text("2,1", `"a","b"`), text("1,2", `"a","b","b"`), text("1,2", `"a",["b"]`)} {
		if digestIn(shape, text("1,2", `"a","b"`)) == digestIn(shape, other) {
			t.Errorf("%s is the same", other)
		}
	}
}

// TestTooManyValuesAreComparedByDigest: order and spelling mean nothing there, as for responses that are too long, whichever side is.
func TestTooManyValuesAreComparedByDigest(t *testing.T) {
	body := func(first string, values int) Reply {
		return Reply{Body: jsontext.Value(`{"bug":[` + first + `,` + strings.Repeat("0, ", values) + `{}]}`)}
	}
	const one, same, other = `{"id":1,"x":"/"}`, `{"x":"\/", "id":1}`, `{"id":1,"x":"?"}`
	long := body(same, 1)
	long.Long = true
	for name, test := range map[string]struct {
		one, two Reply
		want     string
	}{
		"reordered": {body(one, maxNodes), body(same, maxNodes), ""},
		"another":   {body(one, maxNodes), body(other, maxNodes), "digest $"},
		"long":      {body(one, 1), long, ""},
		"none":      {body(one, 1), Reply{}, "missing $"},
	} {
		if found := Compare(mapping.OpFlagTypes, test.one, test.two, Rules{}); said(found) != test.want {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// TestDigestIsOfTheValue: a document has the same digest with its members in another order, and any single change gives another one.
func TestDigestIsOfTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := genDoc(t, 5)
		before := document.String()
		for _, each := range document.all() {
			if each.kind == '{' {
				slices.Reverse(each.names)
				slices.Reverse(each.kids)
			}
		}
		if turned := document.String(); digestOf(before) != digestOf(turned) {
			t.Errorf("%s and %s have different digests", before, turned)
		}
		document.mutate(t)
		if after := document.String(); digestOf(before) == digestOf(after) {
			t.Errorf("%s and %s have the same digest", before, after)
		}
	})
}

func TestRedactKeepsWhatIsNeeded(t *testing.T) {
	r := NewRedactor()
	for _, test := range []struct{ path, value string }{
		{"$", `{"id":7,"is_private":0,"is_patch":true,"size":null,"last_change_time":"2020-01-02T03:04:05Z"}`},
		{"$.bug[id]", `{"id":1,"name":"review","type":"bug","values":["X","?","+","-"],"is_active":true}`},
		{"$.bugs[*][id].flags[id]", `{"id":1,"name":"review","status":"?","type_id":4}`},
		{"$.attachments[*].content_type", `"text/plain; charset=UTF-8"`},
		{"$.bug[id].values[*]", `"?"`},
		{"$.attachments[id].changes.is_private.added", `"1"`},
		{`$.attachments[id].changes["flagtypes.name"].added`, `"review+, single?"`},
		{"status", `404`},
		{"failure", `"tracker-timeout"`},
		{"header.content-type", `"application/json; charset=UTF-8"`},
	} {
		if got := r.Redact(jsontext.Value(test.value), test.path); string(got) != test.value {
			t.Errorf("%s: %s became %s", test.path, test.value, got)
		}
	}
	if r.Redact(nil, "$") != nil {
		t.Error("nothing became something")
	}
}

// secrets are texts in every form that content comes in.
var secrets = []string{"top-secret", "who@example.com", "plan.txt", "dG9wLXNlY3JldA==", "Hidden words here", "4711-geheim", "日本 secret"}

// holdsSecret reports whether any of the secrets is in a text.
func holdsSecret(text string) bool {
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

func TestRedactLetsNoContentThrough(t *testing.T) {
	r := NewRedactor()
	changes := r.Redact(jsontext.Value(`{"attachments":[{"id":5,"changes":{"file_name":{"removed":"plan.txt","added":"top-secret"},
		"flagtypes.name":{"removed":"","added":"review?(who@example.com)"},"is_private":{"removed":"top-secret","added":"1"}}}]}`), "$")
	got := string(changes) + string(r.Redact(jsontext.Value("no json plan.txt"), "$"))
	if failure := `{"failure":"swordfish"}`; strings.Contains(string(r.Redact(jsontext.Value(failure), "$")), "swordfish") ||
		string(r.Redact(jsontext.Value(`"bad-answer"`), PathFailure)) != `"bad-answer"` {
		t.Error("a member of a body counts as the failure of a tracker, or that is not kept")
	}
	if holdsSecret(got) || !strings.Contains(got, `"added":"review?(`) || !strings.Contains(got, `"added":"1"`) {
		t.Errorf("changes and invalid JSON became %s", got)
	}
	members := []string{
		"summary", "file_name", "creator", "setter", "requestee", "data", "description", "comment", "message", "id",
		"status", "name", "values", "type", "content_type", "creation_time", "sortkey", "text", "real_name", "flags",
	}
	for _, secret := range secrets {
		quoted := string(quote(secret))
		for _, member := range members {
			body := fmt.Sprintf(`{%q:%s,"list":[%s],"in":{%q:%s},%s:1}`, member, quoted, quoted, member, quoted, quoted)
			for _, path := range []string{"", "$", "$.bugs[*][id]", "$.attachments[*]", "$.x.y", "message"} {
				if got := string(r.Redact(jsontext.Value(body), path)); holdsSecret(got) {
					t.Fatalf("%q is in %s", secret, got)
				}
			}
		}
	}
}

func TestRedactSaysWhetherTextsAreEqual(t *testing.T) {
	r, other := NewRedactor(), NewRedactor()
	one := string(r.Redact(jsontext.Value(`"plan.txt"`), "$.file_name"))
	if again := string(r.Redact(jsontext.Value(`"\u0070lan.txt"`), "$.file_name")); again != one {
		t.Errorf("the same text is %s and %s", one, again)
	}
	if foreign := string(other.Redact(jsontext.Value(`"plan.txt"`), "$.file_name")); foreign == one {
		t.Errorf("another process says %s too", foreign)
	}
	if !strings.HasPrefix(one, `{"text":{"length":8,"digest":"`) {
		t.Errorf("the text became %s", one)
	}
}

// Memory grows with the length of a text, and not with its depth too.
func TestRedactTakesNoMemoryForDepth(t *testing.T) {
	const depth = 9_000
	text := strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	redacted := NewRedactor().Redact(jsontext.Value(text), "$")
	runtime.ReadMemStats(&after)
	if string(redacted) != text || after.TotalAlloc-before.TotalAlloc > 64<<20 {
		t.Errorf("%d bytes for a text of %d", after.TotalAlloc-before.TotalAlloc, len(text))
	}
}

// What is kept of any difference of random documents has no content in it.
func TestRedactedDifferencesHoldNoContent(t *testing.T) {
	r := NewRedactor()
	rapid.Check(t, func(t *rapid.T) {
		one, two := genDocument(t, "one"), genDocument(t, "two")
		for _, d := range Compare(mapping.OpAttachment, ok(one), ok(two), Rules{}) {
			kept := string(r.Redact(d.Want, d.Path)) + string(r.Redact(d.Have, d.Pointer)) +
				string(r.Redact(d.WantIn, d.Place)) + string(r.Redact(d.HaveIn, d.Place)) + d.Path + d.Pointer
			if holdsSecret(kept) {
				t.Fatalf("content in %s", kept)
			}
		}
	})
}
