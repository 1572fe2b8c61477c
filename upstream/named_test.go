package upstream_test

import (
	"testing"

	"portico/upstream"
)

// robotOnly are callers with one of them named.
func robotOnly() upstream.NamedCallers {
	known := upstream.NamedCallers{}
	known.Add(upstream.NamedCaller{Name: "robot", Key: "own", CandidateKey: "shadow"})
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
		callers := upstream.ComparisonCallers{Candidate: "new", Credentials: tt.policy, ServiceKey: "service", Named: robotOnly()}
		got, asked := callers.For(upstream.Caller{Credentials: tt.caller, Address: "192.0.2.1"}, tt.tracker)
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
	known := robotOnly()
	for key, want := range map[string]string{"own": "robot", "shadow": "robot", "else": "", "": ""} {
		if got := known.Name(upstream.Caller{Credentials: upstream.Credentials{APIKey: key}}); got != want {
			t.Errorf("who shows %q is called %q, want %q", key, got, want)
		}
	}
}
