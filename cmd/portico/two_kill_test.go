package main

import (
	"database/sql" //nolint:depguard // only to be in the way of the store, as another process may be
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestAKillThatTheStoreDoesNotKnow throws the kill switch while another process
// holds the store's lock.
func TestAKillThatTheStoreDoesNotKnow(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "switchover: {rules: [{name: rest, reads: new}]}\n")
	other, err := sql.Open("sqlite", p.state)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	holder, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := func(statement string) {
		if _, err := holder.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	lock("BEGIN IMMEDIATE")
	signed := []string{"--actor", "tester", "--reason", "a test"}
	p.commandWants(t, exitFailed, "The kill switch is thrown: everything goes to the old tracker, but only in this process",
		append([]string{"migrate", "kill"}, signed...)...)
	p.commandWants(t, exitOK, "Only this process knows of the kill yet", "migrate", "status")
	if text := get(t, p.operators+"/switchover"); !strings.Contains(text, "Only this process knows yet") {
		t.Errorf("the page does not say that only this process knows:\n%s", text)
	}
	if text := get(t, p.operators+"/status"); !strings.Contains(text, `"undelivered": "`) {
		t.Errorf("/status does not say that only this process knows:\n%s", text)
	}
	if get(t, p.clients+"/rest/bug/1/attachment"); p.new.Requests()["attachment.list"] > 0 {
		t.Error("after the kill switch the read went to the new tracker")
	}
	lock("ROLLBACK")
	process.Eventually(t, "the store knows", func() bool {
		_, output := p.command(t, "migrate", "status")
		return strings.Contains(output, "KILLED by tester") && !strings.Contains(output, "Only this process")
	})
}
