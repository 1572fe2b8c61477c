package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// Portico as a program before BMO and Harmony (tracker-behaviour.md section 14). The dialect is found by the version.

// beforeMojolicious runs a test before a tracker of each kind, without a cache and with one. The recording holds what
// reaches the tracker.
func beforeMojolicious(t *testing.T, test func(t *testing.T, f *facade, tape *recording), env ...string) {
	t.Helper()
	for _, dialect := range []string{tracker.DialectBMO, tracker.DialectHarmony} {
		for name, scope := range map[string]string{"uncached": "off", "cached": "credential"} {
			t.Run(dialect+"/"+name, func(t *testing.T) {
				t.Parallel()
				tape := &recording{}
				base := listenOn(t, tape.over(reference(t, tracker.Options{Dialect: dialect})))
				test(t, startFacade(t, base.String(), append([]string{"CACHE_SCOPE=" + scope}, env...)...), tape)
			})
		}
	}
}

// asked gives the requests that a tracker has seen, without questions for its version.
func (r *recording) asked() []string {
	r.busy.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, one := range r.list {
		if !strings.HasSuffix(one.uri, "/version") {
			list = append(list, one.method+" "+one.uri)
		}
	}
	return list
}

func TestBMO_ASlashIsNeverSentInAPath(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, tape *recording) {
		for _, place := range []string{"TestProduct%2FComp%20B", "Product%2FWith%2FSlash", "Product%2FWith%2FSlash/x", "Product%2FWith%2FSlash?component=x"} {
			got := f.get(t, "dev", "/rest/flag_type/"+place).refused(t, 400, 53)
			if reason := got.header.Get("Portico-Error"); reason != "not-expressible" {
				t.Errorf("%s: Portico-Error %q", place, reason)
			}
		}
		if asked := tape.asked(); len(asked) > 0 {
			t.Errorf("the tracker was asked %q", asked)
		}
		for _, place := range []string{"TestProduct/comp%2Fslash", "TestProduct?component=comp%2Fslash"} {
			list := f.get(t, "dev", "/rest/flag_type/"+place).ok(t, 200)
			if _, found := list.flagType(t, "incexc"); found {
				t.Errorf("%s: lists a flag type that excludes this component", place)
			}
		}
		for _, asked := range tape.asked() {
			if path, _, _ := strings.Cut(asked, "?"); strings.Contains(path, "%2F") {
				t.Errorf("the tracker was asked %s", asked)
			}
		}
		f.get(t, "dev", "/rest/flag_type/A%2BB%20%26%20C/100%25%20c").ok(t, 200)
	})
}

func TestBMO_ThePluralNameIsAnAlias(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, _ *recording) { pluralReads(t, f) })
	t.Run("bugzilla-5", func(t *testing.T) {
		t.Parallel()
		_, base := startTracker(t, process.FreeAddress(t))
		f := startFacade(t, base)
		pluralReads(t, f)
		id := integer(t, f.post(t, "editor", "/rest/flag_types", `{"name":"plural","description":"d"}`).ok(t, 201).at(t, "id"))
		f.put(t, "editor", fmt.Sprint("/rest/flag_types/", id), `{"sortkey":5}`).ok(t, 200)
		is(t, f.do(t, ask{method: http.MethodOptions, path: "/rest/flag_types/TestProduct"}).header.Get("Allow"), `"GET, PUT"`)
	})
}

func pluralReads(t *testing.T, f *facade) {
	t.Helper()
	for _, place := range []string{"/TestProduct", "/TestProduct/Comp%20B", "/TestProduct?component=comp%2Fslash"} {
		singular, plural := f.get(t, "dev", "/rest/flag_type"+place).ok(t, 200), f.get(t, "dev", "/rest/flag_types"+place).ok(t, 200)
		if string(singular.body) != string(plural.body) {
			t.Errorf("%s: %s\nand by the plural name: %s", place, singular.body, plural.body)
		}
	}
	f.get(t, "dev", "/rest/flag_types/TestProduct%00").refused(t, 400, 32000)
	f.get(t, "dev", "/rest.cgi/flag_types/TestProduct").ok(t, 200)
}

func TestBMO_WritesOfFlagTypesAreRefusedBeforeOtherChecks(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, tape *recording) {
		for _, user := range []string{"editor", ""} {
			for _, body := range []string{`{"name":"n","description":"d"}`, `{"name":"n"}`, `{`, `[]`} {
				for _, got := range []*reply{
					f.post(t, user, "/rest/flag_type", body), f.put(t, user, "/rest/flag_type/1", body),
					f.post(t, user, "/rest/flag_types", body), f.put(t, user, "/rest/flag_types/1", body),
				} {
					if got.refused(t, 404, 32614); got.header.Get("Portico-Error") != "not-expressible" {
						t.Errorf("%s %s %s: Portico-Error %q", got.ask.method, got.ask.path, body, got.header.Get("Portico-Error"))
					}
				}
			}
		}
		if asked := tape.asked(); len(asked) > 0 {
			t.Errorf("the tracker was asked %q", asked)
		}
	})
}

func TestBMO_OptionsListWhatTheTrackerHas(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, _ *recording) {
		for path, want := range map[string]string{
			"/rest/flag_type/TestProduct": "GET", "/rest/flag_types/TestProduct": "GET", "/rest/flag_type/TestProduct/Comp%20B": "GET",
			"/rest/bug/5/attachment": "GET, POST", "/rest/bug/attachment/1": "GET, PUT",
		} {
			got := f.do(t, ask{method: http.MethodOptions, path: path}).ok(t, 200)
			for _, name := range []string{"Allow", "Access-Control-Allow-Methods"} {
				if methods := got.header.Get(name); methods != want {
					t.Errorf("%s: %s: %q, want %q", path, name, methods, want)
				}
			}
		}
		f.do(t, ask{method: http.MethodOptions, path: "/rest/flag_type"}).refused(t, 404, 32614)
	})
}

func TestBMO_ACreateIsAnsweredInBothForms(t *testing.T) {
	beforeMojolicious(t, func(t *testing.T, f *facade, _ *recording) {
		got := f.post(t, "dev", "/rest/bug/7/attachment", upload(`"ids":[7,8],"content_type":"text/plain"`)).ok(t, 201)
		ids, _ := got.at(t, "ids").([]any)
		attachments, _ := got.at(t, "attachments").(map[string]any)
		if len(ids) != 2 || len(attachments) != 2 {
			t.Fatalf("%d ids and %d attachments: %.300s", len(ids), len(attachments), got.body)
		}
		if !slices.IsSortedFunc(ids, func(a, b any) int { return integer(t, a) - integer(t, b) }) {
			t.Errorf("the ids are not in order: %v", ids)
		}
		for _, id := range ids {
			name := fmt.Sprint(id)
			is(t, walk(t, attachments[name], "id"), name)
			is(t, walk(t, attachments[name], "summary"), `"made by a test"`)
			if data, ok := walk(t, attachments[name], "data").(string); !ok || data == "" {
				t.Errorf("attachment %s has no data", name)
			}
		}
		if !json.Valid(got.body) {
			t.Error("the reply is not valid JSON")
		}
	})
}
