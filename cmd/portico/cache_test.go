package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"portico/cache"
)

// TestCacheCommand looks into the cache of a running Portico and purges it.
func TestCacheCommand(t *testing.T) {
	tour := startDemo(t)
	clients := regexp.MustCompile(`Portico is at (\S+),`).FindStringSubmatch(tour)[1]
	operators := regexp.MustCompile(`admin page at (\S+),`).FindStringSubmatch(tour)[1]
	command := func(args ...string) (string, int) {
		code, stdout, stderr := portico(t, nil, append([]string{"cache", "--admin", operators}, args...)...)
		return stdout + stderr, code
	}
	shell(t, "curl -s "+clients+"/rest/flag_type/WebShop")
	shell(t, "curl -s "+clients+"/rest/flag_type/WebShop/Accounts")
	if text, code := command("show", "--product", "WebShop"); code != exitOK || strings.Count(text, "fresh ") != 2 || strings.Count(text, "portico:1:") != 2 {
		t.Errorf("show --product exits with %d and prints\n%s", code, text)
	}
	text, _ := command("show", "--json", "--product", "webshop", "--component", "accounts")
	var answer struct{ Items []cache.Item }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Items) != 1 {
		t.Fatalf("show --json prints %s (%v)", text, err)
	}
	if text, code := command("show", answer.Items[0].Key); code != exitOK || !strings.Contains(text, "Accounts") {
		t.Errorf("show KEY exits with %d and prints\n%s", code, text)
	}
	if text, code := command("purge", "--product", "WebShop"); code != exitOK {
		t.Errorf("purge exits with %d and prints\n%s", code, text)
	}
	if text, _ := command("show", "--product", "WebShop"); strings.Contains(text, "fresh ") {
		t.Errorf("after a purge show prints\n%s", text)
	}
	for _, args := range [][]string{{}, {"show"}, {"show", "K", "--product", "P"}, {"wipe"}, {"purge", "K"}, {"purge", "--product", "P", "--component", "C"}, {"purge", "--product", ""}} {
		if text, code := command(args...); code != exitUsage {
			t.Errorf("cache %q exits with %d: %s", args, code, text)
		}
	}
}
