package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BMO and Harmony ignore an API key that is sent as a bearer token (tracker-behaviour.md section 14, Credentials).

func TestBMO_ABearerKeyIsTheKeyOfItsOwner(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, tape *recording) {
		key := f.keys["granter"]
		forms := map[string]http.Header{"header": {"X-Bugzilla-Api-Key": {key}}, "bearer": {"Authorization": {"Bearer " + key}}, "none": nil}
		want := map[string]string{"header": "[X ? + -]", "bearer": "[X ? + -]", "none": "[X]"}
		for round := range 3 {
			for _, form := range []string{"none", "bearer", "header", "bearer", "none"} {
				if got := valuesWith(t, f, forms[form]); got != want[form] {
					t.Errorf("round %d: with the key as %s the values are %s, want %s", round, form, got, want[form])
				}
			}
		}
		for _, path := range []string{"/rest/whoami", "/rest/bug/attachment/2"} {
			header := http.Header{"Authorization": {"Bearer " + f.keys["insider"]}}
			f.do(t, ask{method: http.MethodGet, path: path, header: header}).ok(t, 200)
			if sent := tape.last(t).header; sent.Get("X-Bugzilla-Api-Key") != f.keys["insider"] || sent.Get("Authorization") != "" {
				t.Errorf("%s: the key was not sent in the form that the tracker reads", path)
			}
		}
	})
}

func TestBMO_AnotherBearerTokenStaysOneAndACallerOfItsOwn(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, tape *recording) {
		for _, token := range []string{"eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl", strings.Repeat("k", 39), strings.Repeat("k", 39) + "-"} {
			header := http.Header{"Authorization": {"Bearer " + token}}
			before := len(tape.asked())
			for range 2 {
				if got := valuesWith(t, f, header); got != "[X]" {
					t.Errorf("with a bearer token the values are %s", got)
				}
			}
			if len(tape.asked()) == before {
				t.Error("a bearer token got what was stored for another caller")
			}
			if sent := tape.last(t).header; sent.Get("Authorization") != "Bearer "+token || sent.Get("X-Bugzilla-Api-Key") != "" {
				t.Errorf("the token was sent as %q, %q", sent.Get("Authorization"), sent.Get("X-Bugzilla-Api-Key"))
			}
		}
	})
}

func valuesWith(t *testing.T, f *facade, header http.Header) string {
	t.Helper()
	got := f.do(t, ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", header: header}).ok(t, 200)
	return fmt.Sprint(got.field(t, "granted", "values"))
}
