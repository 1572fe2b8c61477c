package main

import (
	"testing"
)

// TestCachedAddress: replicas that are given the same tracker share, others do not.
func TestCachedAddress(t *testing.T) {
	at := func(address, dialect string) string {
		t.Helper()
		settings := TrackerConfig{URL: address, Dialect: dialect}
		base, err := trackerBase("main", settings)
		if err != nil {
			t.Fatal(err)
		}
		return cachedAddress(settings, base)
	}
	usual := at("https://Tracker.example/bugs/", "auto")
	for _, same := range []string{"https://tracker.example/bugs", "https://tracker.example:443/bugs/", "HTTPS://u:p@tracker.example/bugs"} {
		if got := at(same, "auto"); got != usual {
			t.Errorf("%s is %q and not %q", same, got, usual)
		}
	}
	for _, other := range []string{"http://tracker.example/bugs", "https://tracker.example/Bugs", "https://tracker.example:8443/bugs", "https://tracker.example/"} {
		if at(other, "auto") == usual {
			t.Errorf("%s is the same as https://tracker.example/bugs", other)
		}
	}
	if at("https://tracker.example/bugs", "bmo") == usual {
		t.Error("another dialect makes no difference")
	}
}
