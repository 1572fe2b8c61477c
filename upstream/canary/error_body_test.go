package canary_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// TestErrorsAreComparedWhole: clients get all members of an error as the tracker has them.
func TestErrorsAreComparedWhole(t *testing.T) {
	for name, test := range map[string]struct {
		old, fresh string
		found      []string
	}{
		"equal":                 {`"error"`, `"error"`, nil},
		"another documentation": {`https://bugzilla.readthedocs.org/`, `https://elsewhere.example/`, []string{"attachment.get value $.documentation"}},
		"no documentation":      {`"documentation":`, `"about":`, []string{"attachment.get extra $.about", "attachment.get missing $.documentation"}},
		"a member more":         {`"error":true`, `"error":true,"stack":"x"`, []string{"attachment.get extra $.stack"}},
		"an object more":        {`"error":true`, `"error":true,"detail":{"a":1}`, []string{"attachment.get extra $.detail"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{around: rewriting(func(_ int64, _ *http.Request, body []byte) []byte {
				return bytes.Replace(body, []byte(test.old), []byte(test.fresh), 1)
			})})
			w.caller = upstream.Caller{Address: "192.0.2.7"}
			w.make(attachment("2")) // which is private
			if found := w.findings(); !slices.Equal(found, test.found) {
				t.Errorf("found %q, want %q", found, test.found)
			}
			if sum := w.sum(""); sum.Compared != 1 || sum.Transient > 0 {
				t.Errorf("got %+v, want one comparison that is not in passing", sum)
			}
		})
	}
}

// withType sends all answers with another content type.
func withType(kind string) func(http.Handler) http.Handler {
	return changed(func(said *httptest.ResponseRecorder) { said.Header().Set("Content-Type", kind) })
}

func TestContentTypeIsCompared(t *testing.T) {
	for kind, want := range map[string][]string{
		"text/html; charset=UTF-8":       {"attachment.get header header.content-type", "flag_type.get header header.content-type"},
		"Application/JSON;charset=utf-8": nil, "application/json": nil,
	} {
		w := newWorld(t, worldOptions{around: withType(kind)})
		w.make(attachment("1"))
		w.make(flagTypes("TestProduct"))
		if found := w.findings(); !slices.Equal(found, want) {
			t.Errorf("%s: found %q, want %q", kind, found, want)
		}
		if sum := w.sum(""); sum.Transient > 0 {
			t.Errorf("%s: %d were in passing", kind, sum.Transient)
		}
	}
}

// TestCachedAnswersHideNoStatus: what the client gets from a cache has no status of its own, and the candidate's is
// compared all the same.
func TestCachedAnswersHideNoStatus(t *testing.T) {
	for status, want := range map[int][]string{203: {"flag_type.get status status"}, 200: nil} {
		w := newWorld(t, worldOptions{around: withStatus(status)})
		call := flagTypes("TestProduct")
		answer := call.Make(t.Context(), w.client, w.caller)
		text, err := answer.Document.Load(jsonblob.SplitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cached := upstream.Response{Document: mapping.NewDocument(text), FromCache: true, Took: time.Millisecond}
		document := w.canary.Answered(t.Context(), w.caller, call, upstream.Sides{Serving: oldName, Compared: newName}, cached)
		_ = document.Close()
		if found := w.findings(); !slices.Equal(found, want) {
			t.Errorf("%d: found %q, want %q", status, found, want)
		}
		if sum := w.sum(""); sum.Transient > 0 {
			t.Errorf("%d: %d were in passing", status, sum.Transient)
		}
	}
}
