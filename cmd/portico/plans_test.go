package main

import (
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
		client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: dialect, Transport: &notSent{}})
		if err != nil {
			t.Fatal(err)
		}
		clients[dialect] = client
	}
	plan := planner(clients)
	update := upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{7, 8}}}
	for name := range clients {
		text, err := plan(t.Context(), name, update)
		if want := `{"method":"PUT","path":"/rest/bug/attachment/7","body":{"ids":[7,8]}}`; err != nil || string(text) != want {
			t.Errorf("%s: %s (%v), want %s", name, text, err, want)
		}
	}
	create := upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{FlagTypeFields: mapping.FlagTypeFields{Name: new("n")}}}
	if text, err := plan(t.Context(), "bugzilla-5", create); err != nil || !strings.Contains(string(text), `"path":"/rest/flag_type"`) {
		t.Errorf("a create is planned as %s (%v)", text, err)
	}
	if text, err := plan(t.Context(), "bmo", create); err == nil {
		t.Errorf("a create that bmo has no form for is planned as %s", text)
	}
	if _, err := plan(t.Context(), "other", create); err == nil {
		t.Error("a tracker that is not there has a plan")
	}
	if _, err := plan(t.Context(), "bmo", upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{}}); err == nil {
		t.Error("a read is planned as a write")
	}
}
