package app

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// robotOnly are callers with one of them named.
func robotOnly(t *testing.T) callers {
	t.Helper()
	known, err := readCallers(map[string]config.Caller{"robot": {Key: config.Secret{Env: "KEY"}, ShadowKey: config.Secret{Env: "SHADOW"}}},
		func(name string) (string, bool) {
			return map[string]string{"KEY": "own", "SHADOW": "shadow"}[name], true
		})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// TestShadowCallers checks what each policy shows to which tracker.
func TestShadowCallers(t *testing.T) {
	robot := upstream.Credentials{APIKey: "own", Cookies: "a=1"}
	moved := upstream.Credentials{APIKey: "shadow"}
	other := upstream.Credentials{APIKey: "unnamed"}
	nobody := upstream.Credentials{Cookies: "LANG=en"}
	byCookie := upstream.Credentials{APIKey: "own", Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}
	byLogin := upstream.Credentials{Login: "l", Password: "p", Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}
	for _, tt := range []struct {
		policy, tracker string
		caller          upstream.Credentials
		want            string
		asked           bool
	}{
		{"forward", "new", robot, "own", true},
		{"forward", "main", robot, "own", true},
		{"forward", "new", nobody, "", true},
		{"forward", "new", byCookie, "own", false},
		{"forward", "new", byLogin, "", true},
		{"service", "new", robot, "service", true},
		{"service", "main", robot, "own", true},
		{"service", "new", byLogin, "service", true},
		{"service", "new", nobody, "", true},
		{"mapped", "new", robot, "shadow", true},
		{"mapped", "main", robot, "own", true},
		{"mapped", "new", moved, "shadow", true},
		{"mapped", "main", moved, "own", true},
		{"mapped", "new", other, "", false},
		{"mapped", "new", nobody, "", true},
	} {
		cfg := config.Config{Candidate: "new", Canary: config.Canary{Credentials: tt.policy}}
		got, asked := robotOnly(t).forComparison(&cfg, "service")(upstream.Caller{Credentials: tt.caller, Address: "192.0.2.1"}, tt.tracker)
		if asked != tt.asked || got.Credentials.APIKey != tt.want || got.Credentials.Cookies != "" || got.Address != "192.0.2.1" {
			t.Errorf("%s: %s is asked (%t) with key %q and cookies %q, want (%t) %q", tt.policy, tt.tracker,
				asked, got.Credentials.APIKey, got.Credentials.Cookies, tt.asked, tt.want)
		}
		if tt.policy == "service" && tt.tracker == "new" && tt.want == "service" && got.Credentials.Login != "" {
			t.Error("the caller's own login is shown beside the key of the service")
		}
	}
}

// TestCallersAreKnownByBothKeys names a caller by the key of either tracker.
func TestCallersAreKnownByBothKeys(t *testing.T) {
	known := robotOnly(t)
	for key, want := range map[string]string{"own": "robot", "shadow": "robot", "else": "", "": ""} {
		if got := known.name(upstream.Caller{Credentials: upstream.Credentials{APIKey: key}}); got != want {
			t.Errorf("who shows %q is called %q, want %q", key, got, want)
		}
	}
}

// TestPlansAreRenderedPerDialect renders one write for two kinds of trackers,
// without sending anything.
func TestPlansAreRenderedPerDialect(t *testing.T) {
	rt := Runtime{trackers: map[string]*tracker{}}
	base, err := url.Parse("http://tracker.example/")
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"bugzilla-5", "bmo"} {
		client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: dialect, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		rt.trackers[dialect] = &tracker{shadow: client}
	}
	update := upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{7, 8}}}
	for name := range rt.trackers {
		text, err := rt.planWrite(t.Context(), name, update)
		if want := `{"method":"PUT","path":"/rest/bug/attachment/7","body":{"ids":[7,8]}}`; err != nil || string(text) != want {
			t.Errorf("%s: %s (%v), want %s", name, text, err, want)
		}
	}
	create := upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Name: new("n")}}}
	if text, err := rt.planWrite(t.Context(), "bugzilla-5", create); err != nil || !strings.Contains(string(text), `"path":"/rest/flag_type"`) {
		t.Errorf("a create is planned as %s (%v)", text, err)
	}
	if text, err := rt.planWrite(t.Context(), "bmo", create); err == nil {
		t.Errorf("a create that bmo has no form for is planned as %s", text)
	}
	read := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "a b"}}
	if address := rt.readAddress(t.Context(), "bugzilla-5", read); address != "/rest/flag_type/a%20b" {
		t.Errorf("a read has the address %q", address)
	}
}
