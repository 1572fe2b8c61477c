package switchover_test

import (
	"errors"
	"testing"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/switchover"
)

// robotOnly are callers with one of them named.
func robotOnly() upstream.NamedCallers {
	known := upstream.NamedCallers{}
	known.Add(upstream.NamedCaller{Name: "robot", Keys: map[string]string{"main": "own", "new": "shadow"}})
	return known
}

// TestShadowCallers checks what each policy shows to which tracker.
func TestShadowCallers(t *testing.T) {
	robot := upstream.Credentials{APIKey: "own", Cookies: "a=1"}
	moved := upstream.Credentials{APIKey: "shadow"}
	other := upstream.Credentials{APIKey: "unnamed"}
	nobody := upstream.Credentials{Cookies: "LANG=en"}
	byCookie := upstream.Credentials{APIKey: "own", Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}
	byLogin := upstream.Credentials{Login: "l", Password: "p", Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x", PageToken: "t"}
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
		keys := switchover.Keys{Tracker: tt.tracker, Credentials: tt.policy, ServiceKey: "service", Named: robotOnly(), ForAll: true, RefuseLogins: tt.policy == "mapped"}
		if tt.policy == "service" && tt.tracker == "main" {
			keys.Credentials = "forward"
		}
		got, asked := keys.ForComparison(upstream.Caller{Credentials: tt.caller, Address: "192.0.2.1"})
		if asked != tt.asked || got.Credentials.APIKey != tt.want || got.Credentials.Cookies+got.Credentials.PageToken != "" || asked && got.Address != "192.0.2.1" {
			t.Errorf("%s: %s is asked (%t) with key %q and cookies %q, want (%t) %q", tt.policy, tt.tracker,
				asked, got.Credentials.APIKey, got.Credentials.Cookies, tt.asked, tt.want)
		}
		if tt.policy == "service" && tt.tracker == "new" && tt.want == "service" && got.Credentials.Login != "" {
			t.Error("the caller's own login is shown beside the key of the service")
		}
	}
}

// TestLiveCallers checks what each policy shows to the new tracker in live requests.
func TestLiveCallers(t *testing.T) {
	robot, moved, other := upstream.Credentials{APIKey: "own"}, upstream.Credentials{APIKey: "shadow"}, upstream.Credentials{APIKey: "unnamed"}
	byCookie := upstream.Credentials{Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}
	byToken, byBoth := upstream.Credentials{Token: "1-t"}, upstream.Credentials{APIKey: "own", Login: "l", Password: "p"}
	const noKey, noLogin = upstream.ReasonNoMappedKey, upstream.ReasonLoginRefused
	for _, tt := range []struct {
		policy string
		refuse bool
		shown  upstream.Credentials
		want   upstream.Credentials
		reason mapping.Reason
	}{
		{"forward", false, other, other, ""},
		{"forward", true, other, other, ""},
		{"forward", true, byCookie, byCookie, noLogin},
		{"forward", true, byToken, byToken, noLogin},
		{"forward", true, byBoth, byBoth, noLogin},
		{"mapped", false, robot, moved, ""},
		{"mapped", false, moved, moved, ""},
		{"mapped", false, other, other, noKey},
		{"mapped", false, byToken, byToken, ""},
		{"mapped", false, byBoth, byBoth, ""},
		{"mapped", true, byBoth, byBoth, noLogin},
		{"mapped", true, upstream.Credentials{}, upstream.Credentials{}, ""},
		{"service", false, robot, upstream.Credentials{APIKey: "service"}, ""},
		{"service", false, other, other, noKey}, // or any text would be the service
		{"service", false, byToken, byToken, ""},
	} {
		missing := 0
		keys := switchover.Keys{
			Tracker: "new", Credentials: tt.policy, ServiceKey: "service", RefuseLogins: tt.refuse, Named: robotOnly(),
			Missing: func(upstream.Caller) { missing++ },
		}
		got, err := keys.For(upstream.Caller{Credentials: tt.shown})
		var reason mapping.Reason
		if refused, ok := errors.AsType[*mapping.Error](err); ok {
			reason = refused.Reason
		}
		if err == nil && got.Credentials != tt.want || err != nil && got != (upstream.Caller{}) || reason != tt.reason || (missing > 0) != (reason == noKey) {
			t.Errorf("%s, logins refused %t: shown by %s, reason %q, missing %d", tt.policy, tt.refuse, got.CredentialKind(), reason, missing)
		}
		if got, err := keys.For(upstream.Caller{Credentials: other, Mapped: true}); err != nil || got.Credentials != other {
			t.Errorf("%s: credentials that are chosen already are replaced: %v", tt.policy, err)
		}
	}
}
