package main

import (
	"encoding/json"
	"strings"
	"testing"

	"portico/cache"
	"portico/test/tracker"
)

// TestCacheCommand looks into the caches of both trackers and purges them.
func TestCacheCommand(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "switchover: {rules: [{name: one, component: Accounts, reads: new}, {name: rest}]}\ncache: {ttl: 10m}\n")
	get(t, p.clients+webShop)
	get(t, p.clients+webShop+"/Accounts")
	code, text := p.command(t, "cache", "show", "--product", "WebShop")
	for _, want := range []string{"  main ", "  new "} {
		if code != exitOK || strings.Count(text, "fresh ") != 2 || strings.Count(text, "portico:1:") != 2 || !strings.Contains(text, want) {
			t.Errorf("show --product exits with %d and prints no %q\n%s", code, want, text)
		}
	}
	_, text = p.command(t, "cache", "show", "--json", "--product", "webshop", "--component", "accounts")
	var answer struct{ Items []cache.Item }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Items) != 1 || answer.Items[0].TTLSeconds < 120 {
		t.Fatalf("show --json prints %s (%v)", text, err)
	}
	p.commandWants(t, exitOK, "Accounts", "cache", "show", answer.Items[0].Key)
	p.commandWants(t, exitOK, "Purged", "cache", "purge", "--product", "WebShop")
	if _, text := p.command(t, "cache", "show", "--product", "WebShop"); strings.Contains(text, "fresh ") {
		t.Errorf("after a purge show prints\n%s", text)
	}
	for _, args := range [][]string{{}, {"show"}, {"show", "K", "--product", "P"}, {"wipe"}, {"purge", "K"}, {"purge", "--product", "P", "--component", "C"}, {"purge", "--product", ""}} {
		p.commandWants(t, exitUsage, "", append([]string{"cache"}, args...)...)
	}
}
