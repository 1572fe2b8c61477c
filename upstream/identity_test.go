package upstream_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"portico/upstream"
)

func keyed(key string) upstream.Caller {
	return upstream.Caller{Credentials: upstream.Credentials{APIKey: key}, Address: "192.0.2.1"}
}

// TestPositionsMakeShares of about the right size, which only grow when the percentage does, and are others for each salt.
func TestPositionsMakeShares(t *testing.T) {
	const callers = 20_000
	at := func(i int, percent float64, salt string) bool {
		return keyed(fmt.Sprint("key-", i)).Position(salt) < percent/100
	}
	for _, percent := range []float64{0, 1, 10, 50, 99, 100} {
		chosen, gone, both := 0, 0, 0
		for i := range callers {
			if !at(i, percent, "r") {
				continue
			}
			if chosen++; !at(i, min(100, percent+5), "r") {
				gone++
			}
			if at(i, percent, "another") {
				both++
			}
		}
		got := 100 * float64(chosen) / callers
		if spread := 1.5; got < percent-spread || got > percent+spread {
			t.Errorf("%v %% of callers are %.2f %%", percent, got)
		}
		if gone > 0 {
			t.Errorf("%d callers leave the share when %v %% is raised", gone, percent)
		}
		if want := percent / 100; float64(both)/callers > want*want+0.02 {
			t.Errorf("%d of %d callers are in two shares of %v %%", both, callers, percent)
		}
	}
}

func TestPositionOfTheSameCallerInOtherForms(t *testing.T) {
	with := func(c upstream.Credentials) upstream.Caller {
		return upstream.Caller{Credentials: c, Address: "192.0.2.9"}
	}
	for name, forms := range map[string][]upstream.Caller{
		"a user's tokens and cookies": {
			with(upstream.Credentials{Token: "12-abc"}), with(upstream.Credentials{Token: "12-def"}),
			with(upstream.Credentials{Cookies: "a=b; Bugzilla_login=12; Bugzilla_logincookie=x"}),
		},
		"a key": {
			keyed("k"), with(upstream.Credentials{APIKey: " k ", Authorization: "Bearer k"}),
			with(upstream.Credentials{APIKey: "k", Login: "without a password"}),
		},
		"a login": {
			with(upstream.Credentials{Login: "ann", Password: "old"}), with(upstream.Credentials{Login: "ann", Password: "new", Token: "7-x", APIKey: "k"}),
		},
		"an address": {with(upstream.Credentials{}), with(upstream.Credentials{Cookies: "VERSION=1"})},
	} {
		for _, form := range forms[1:] {
			if forms[0].Position("r") != form.Position("r") {
				t.Errorf("%s: %#v is another caller", name, form.Credentials)
			}
		}
	}
	here := upstream.Caller{Address: "192.0.2.1"}
	if here.Position("r") == with(upstream.Credentials{}).Position("r") {
		t.Error("two addresses are one caller")
	}
	// The first 53 bits of the SHA-256 of "\x01ra\x09192.0.2.1".
	if got := here.Position("r"); got != 0.6960982095747983 {
		t.Errorf("a caller's position is not the same in every process: %v", got)
	}
	if allocations := testing.AllocsPerRun(100, func() { _ = here.Position("r") }); allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestCredentialsAreNotPrinted in whatever form.
func TestCredentialsAreNotPrinted(t *testing.T) {
	caller := upstream.Caller{Credentials: upstream.Credentials{APIKey: "secret", Password: "secret", Cookies: "secret"}}
	var text strings.Builder
	slog.New(slog.NewJSONHandler(&text, nil)).Info("called", "caller", caller, "credentials", caller.Credentials)
	asJSON, err := json.Marshal(caller)
	fmt.Fprintf(&text, "%s %s %+v %#v %+v %#v", asJSON, caller, caller, caller, caller.Credentials, caller.Credentials)
	if err != nil || strings.Contains(text.String(), "secret") {
		t.Errorf("%v in %s", err, &text)
	}
}
