package bugzilla_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// TestPlansAreRenderedPerDialect renders one write for two kinds of trackers,
// without sending anything.
func TestPlansAreRenderedPerDialect(t *testing.T) {
	clients := map[string]*bugzilla.Client{}
	base, err := url.Parse("http://tracker.example/")
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"bugzilla-5", "bmo"} {
		client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: dialect, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		clients[dialect] = client
	}
	update := upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{7, 8}}}
	for name, client := range clients {
		text, err := client.ShowPlan(t.Context(), update)
		if want := `{"method":"PUT","path":"/rest/bug/attachment/7","body":{"ids":[7,8]}}`; err != nil || string(text) != want {
			t.Errorf("%s: %s (%v), want %s", name, text, err, want)
		}
	}
	create := upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Name: new("n")}}}
	if text, err := clients["bugzilla-5"].ShowPlan(t.Context(), create); err != nil || !strings.Contains(string(text), `"path":"/rest/flag_type"`) {
		t.Errorf("a create is planned as %s (%v)", text, err)
	}
	if text, err := clients["bmo"].ShowPlan(t.Context(), create); err == nil {
		t.Errorf("a create that bmo has no form for is planned as %s", text)
	}
	read := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "a b"}}
	if address := clients["bugzilla-5"].ReadAddress(t.Context(), read); address != "/rest/flag_type/a%20b" {
		t.Errorf("a read has the address %q", address)
	}
}

// Replicas with the same tracker share a cache, however its URL is written.
func TestSameAddress(t *testing.T) {
	at := func(address string) string {
		t.Helper()
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return bugzilla.SameAddress(base)
	}
	usual := at("https://Tracker.example/bugs/")
	for _, same := range []string{"https://tracker.example/bugs", "https://tracker.example:443/bugs/", "HTTPS://u:p@tracker.example/bugs"} {
		if got := at(same); got != usual {
			t.Errorf("%s is %q and not %q", same, got, usual)
		}
	}
	for _, other := range []string{"http://tracker.example/bugs", "https://tracker.example/Bugs", "https://tracker.example:8443/bugs", "https://tracker.example/"} {
		if at(other) == usual {
			t.Errorf("%s is the same as https://tracker.example/bugs", other)
		}
	}
}
