package main

import (
	"net/http"
	"strings"
	"testing"

	"portico/test/tracker"
)

// TestAWriteCountsForTheOtherCache has a candidate that is a copy of the primary: what
// is written to the one is read at the other, by everybody and after a way there and
// back.
func TestAWriteCountsForTheOtherCache(t *testing.T) {
	t.Parallel()
	_, address := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	file := writeFile(t, "c.yaml", pairConfig(address, address, t.TempDir()+"/p.db",
		"switchover: {follow: 0s, rules: [{name: rest, reads: new, writes: old}]}\ncache: {local_ttl: 1m}\n"))
	clients, operators := serveConfig(t, file)
	p := &pair{clients: "http://" + clients, operators: "http://" + operators}
	write := func(text string) {
		t.Helper()
		response, said := send(t, http.MethodPut, p.clients+"/rest/flag_type/1", `{"description":"`+text+`"}`, key("admin")...)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", response.Status, said)
		}
	}
	read := func(want string) {
		t.Helper()
		for _, user := range []string{"admin", "dev"} {
			if _, said := send(t, http.MethodGet, p.clients+webShop, "", key(user)...); !strings.Contains(said, want) {
				t.Errorf("%s does not see %q: %s", user, want, said)
			}
		}
	}
	read("")
	write("the first text")
	read("the first text")
	signed := []string{"--actor", "tester", "--reason", "a test"}
	p.commandWants(t, exitOK, "KILLED", append([]string{"migrate", "kill"}, signed...)...)
	write("the second text")
	p.commandWants(t, exitOK, "version", append([]string{"migrate", "revive"}, signed...)...)
	read("the second text")
}
