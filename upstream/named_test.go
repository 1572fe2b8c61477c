package upstream_test

import (
	"testing"

	"portico/upstream"
)

// robotOnly are callers with one of them named.
func robotOnly() upstream.NamedCallers {
	known := upstream.NamedCallers{}
	known.Add(upstream.NamedCaller{Name: "robot", Keys: map[string]string{"main": "own", "new": "shadow"}})
	return known
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
