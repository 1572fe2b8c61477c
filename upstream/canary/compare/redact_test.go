package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"portico/mapping"
)

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
		{"$.method", `"PUT"`},
		{"$.path", `"/rest/bug/attachment/12"`},
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

func TestRedactTakesContentOutOfChanges(t *testing.T) {
	body := `{"attachments":[{"id":5,"changes":{"file_name":{"removed":"plan.txt","added":"top-secret"},
		"flagtypes.name":{"removed":"","added":"review?(who@example.com)"},"is_private":{"removed":"top-secret","added":"1"}}}]}`
	got := string(NewRedactor().Redact(jsontext.Value(body), "$"))
	if holdsSecret(got) || !strings.Contains(got, `"added":"review?(`) || !strings.Contains(got, `"added":"1"`) {
		t.Errorf("it became %s", got)
	}
	if got := string(NewRedactor().Redact(jsontext.Value("no json plan.txt"), "$")); holdsSecret(got) {
		t.Errorf("what is no JSON became %s", got)
	}
}

func TestRedactRecordedAnswers(t *testing.T) {
	r := NewRedactor()
	got := string(r.Redact(jsontext.Value(recorded(t, "att.list.bug5.insider")), "$"))
	for _, gone := range []string{"plain", "own.txt", "p5.txt", "example", "cHJpdm", "private in", "insider"} {
		if strings.Contains(got, gone) && gone != "plain" || strings.Contains(got, "plain@") {
			t.Errorf("%q is still in %s", gone, got)
		}
	}
	for _, kept := range []string{`"name":"review"`, `"status":"?"`, `"content_type":"text/plain"`, `"id":15`, `"creation_time":"2020-01-02T03:04:05Z"`} {
		if !strings.Contains(got, kept) {
			t.Errorf("%q is not in %s", kept, got)
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
