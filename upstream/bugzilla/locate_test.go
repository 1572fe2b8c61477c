package bugzilla

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/tracker"
	"portico/upstream"
)

// fixture makes a client of the reference tracker, and callers by user.
func fixture(t *testing.T, options tracker.Options) (*Client, func(user string) upstream.Caller) {
	t.Helper()
	reference := tracker.New(options)
	t.Cleanup(func() { _ = reference.Close() })
	client := dial(t, "auto", reference.ServeHTTP)
	return client, func(user string) upstream.Caller {
		return upstream.Caller{Credentials: upstream.Credentials{APIKey: tracker.FixtureKeys()[user]}}
	}
}

func TestWhereABugBelongs(t *testing.T) {
	for _, dialect := range []string{tracker.DialectBugzilla5, tracker.DialectBMO} {
		client, as := fixture(t, tracker.Options{Dialect: dialect})
		for _, c := range []struct {
			user, ref string
			want      mapping.Place
			code      int
		}{
			{"", "1", mapping.Place{Bug: 1, Product: "TestProduct", Component: "Component A"}, 0},
			{"dev", " 001 ", mapping.Place{Bug: 1, Product: "TestProduct", Component: "Component A"}, 0},
			{"", "alias-one", mapping.Place{Bug: 1, Product: "TestProduct", Component: "Component A"}, 0},
			{"", "99999", mapping.Place{}, 101},
			{"", "no-such-alias", mapping.Place{}, 100},
			{"", "no/such/alias", mapping.Place{}, 100},
			{"", "..", mapping.Place{}, 100},
			{"", "4", mapping.Place{}, 102},
			{"revoked", "1", mapping.Place{}, 306},
		} {
			if odd := strings.ContainsAny(c.ref, "/."); odd && dialect == tracker.DialectBMO {
				continue // it has no form for such an alias
			}
			got, err := client.Bug(t.Context(), as(c.user), c.ref)
			if got != c.want || codeOf(err) != c.code {
				t.Errorf("%s: bug %q for %q is at %+v (%v), want %+v and code %d", dialect, c.ref, c.user, got, err, c.want, c.code)
			}
		}
	}
}

// codeOf is the tracker's code of an error, 0 for none and -1 for another error.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if said, ok := errors.AsType[*mapping.Error](err); ok && said.FromTracker() {
		return said.Code
	}
	return -1
}

func TestTheBugOfAnAttachment(t *testing.T) {
	client, as := fixture(t, tracker.Options{})
	for _, c := range []struct {
		user string
		id   int64
		want int64
		code int
	}{{"", 1, 1, 0}, {"", 11, 5, 0}, {"", 99999, 0, 0}, {"", 7, 0, 304}, {"insider", 7, 1, 0}} {
		got, err := client.AttachmentBug(t.Context(), as(c.user), c.id)
		if got != c.want || codeOf(err) != c.code {
			t.Errorf("attachment %d for %q hangs on %d (%v), want %d and code %d", c.id, c.user, got, err, c.want, c.code)
		}
	}
}

func TestWhereFlagTypesApply(t *testing.T) {
	client, as := fixture(t, tracker.Options{})
	own := mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{
		Name: new("own"), Description: new("d"), Inclusions: &mapping.Scopes{{Product: "TestProduct", Components: []string{"Component A", "Comp B"}}},
	}}
	made, err := client.Do(t.Context(), as("editor"), upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &own})
	must(t, err)
	products, got, err := client.FlagTypePlaces(t.Context(), as("editor"), []int64{made.ID(), 99999}, []string{" OWN", "slashonly", "none"})
	here := mapping.Scopes{{Product: "TestProduct", Components: []string{"Component A", "Comp B"}}}
	want := []mapping.Scopes{here, nil, here, {{Product: "Product/With/Slash"}}, nil}
	if err != nil || !reflect.DeepEqual(got, want) || !slices.Contains(products, "TestProduct") || slices.Contains(products, "SecretProduct") {
		t.Errorf("got %+v in %q (%v), want %+v", got, products, err, want)
	}
	secret := func(user string) int {
		_, places, err := client.FlagTypePlaces(t.Context(), as(user), nil, []string{"secretonly"})
		must(t, err)
		return len(places[0])
	}
	if secret("secret") == 0 || secret("editor") != 0 {
		t.Error("what a caller is told is not what the caller may see")
	}
}

func TestLookupsGoWithTheCallersCredentialOnly(t *testing.T) {
	var asked []string
	client := dial(t, "bmo", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), " ", r.Header.Get("X-Bugzilla-Api-Key")))
		_, _ = w.Write([]byte(`{"bugs":[{"id":5,"product":"P","component":"C"}],"products":[]}`))
	})
	who := upstream.Caller{Credentials: upstream.Credentials{APIKey: "K"}}
	place, err := client.Bug(t.Context(), who, "a#..?b")
	if err != nil || place.Bug != 5 {
		t.Errorf("got %+v (%v)", place, err)
	}
	if _, _, err := client.FlagTypePlaces(t.Context(), who, nil, nil); err != nil {
		t.Error(err)
	}
	want := []string{"GET /rest/bug/a%23..%3Fb K", "GET /rest/product K"}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestAnswersThatTellNoPlace(t *testing.T) {
	for _, answer := range []string{`{}`, `{"bugs":[]}`, `{"bugs":[{"id":5}]}`, `{"bugs":{}}`, `{"bugs":[{"id":1,"product":"P"},{"id":2,"product":"P"}]}`} {
		client := dial(t, "bugzilla-5", answering(200, "application/json", answer))
		_, err := client.Bug(t.Context(), upstream.Caller{}, "5")
		checkError(t, err, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, false)
	}
	client := dial(t, "bugzilla-5", answering(503, "text/html", "<html>"))
	_, err := client.AttachmentBug(t.Context(), upstream.Caller{}, 5)
	checkError(t, err, mapping.CodeBadGateway, 502, mapping.ReasonBadResponse, false)
}
