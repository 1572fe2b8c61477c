package recording_test

import (
	"testing"

	"portico/test/tracker"
	"portico/test/wire"
	"portico/upstream/recording"
)

const dependent = "its answer depends on a request that was not made"

// TestReplayReadOnly: without writes, the recordings of a real tracker differ nowhere from one that has its first data.
func TestReplayReadOnly(t *testing.T) {
	list, err := wire.Load(wireRecordings)
	if err != nil {
		t.Fatal(err)
	}
	server, base := reference(t, tracker.Options{})
	result := replay(t, list, recording.ReplayOptions{Tracker: base})
	if r := result.Report; r.Overall.Compared < 100 || len(r.Findings) > 0 || result.Skipped[dependent] == 0 || len(server.Journal()) > 0 {
		t.Errorf("%d sent, skipped %v, %d compared, found\n%s", result.Sent, result.Skipped, r.Overall.Compared, describe(r))
	}
}

// asked is an exchange with an answer of a certain status.
func asked(method, path, body string, status int) recording.Exchange {
	e := recording.Exchange{Name: method + " " + path, Request: recording.Request{Method: method, Path: path, Headers: map[string]string{}}}
	if body != "" {
		e.Request.Body = []byte(body)
	}
	if status > 0 {
		e.Response = &recording.Response{Status: status, Headers: map[string]string{"content-type": "application/json"}, Body: []byte("{}")}
	}
	return e
}

// TestReplayDependents: after a request that was left out, what it may have changed is not compared, until the data is put back.
func TestReplayDependents(t *testing.T) {
	_, base := reference(t, tracker.Options{})
	types, items := asked("GET", "/rest/flag_type/TestProduct", "", 200), asked("GET", "/rest/bug/attachment/1", "", 200)
	again := types
	again.Reset = true
	for _, c := range []struct {
		write        recording.Exchange
		o            recording.ReplayOptions
		types, items bool
	}{
		{write: asked("POST", "/rest/flag_type", "{}", 201), types: true},
		{write: asked("PUT", "/rest.cgi/flag_type/2", "{}", 200), types: true, items: true},
		{write: asked("PUT", "/rest/flag_type/2", "{}", 400)},
		{write: asked("PUT", "/rest/flag_type/2", "{}", 504), types: true, items: true},
		{write: asked("POST", "/rest/bug/1/attachment", "{}", 0), items: true},
		{write: asked("PUT", "/rest/bug/attachment/1", "{}", 200), items: true},
		{write: asked("PUT", "/rest/bug/1", "{}", 200), items: true},
		{write: asked("PUT", "/rest/user/1", "{}", 200), types: true, items: true},
		{write: asked("POST", "/jsonrpc.cgi", `{"method":"Bug.get","params":[]}`, 200)},
		{write: asked("POST", "/jsonrpc.cgi", `{"method":"Bug.update","params":[]}`, 200), items: true},
		{write: asked("POST", "/jsonrpc.cgi", `{"method":"Bug.get","method":"FlagType.update"}`, 200), types: true, items: true},
		{write: asked("POST", "/xmlrpc.cgi", `<methodCall><methodName>FlagType.create</methodName></methodCall>`, 200), types: true},
		{write: asked("POST", "/xmlrpc.cgi", "", 200), types: true, items: true},
		{write: asked("POST", "/userprefs.cgi", "", 200)},
		{write: asked("POST", "/process_bug.cgi", "", 200), items: true},
		{write: asked("POST", "/editproducts.cgi", "", 200), types: true, items: true},
		{write: asked("GET", "/editflagtypes.cgi?removed", "", 200), types: true, items: true},
		{write: asked("PUT", "/rest/flag_type/2", "{}", 200), o: recording.ReplayOptions{Against: base}},
		{write: asked("PUT", "/rest/flag_type/2", "{}", 200), o: recording.ReplayOptions{Only: []string{"flag_type.get", "attachment.get"}}, types: true, items: true},
	} {
		c.o.Tracker = base
		result := replay(t, []recording.Exchange{types, items, c.write, types, items, again}, c.o)
		want := 0
		for _, depends := range []bool{c.types, c.items} {
			if depends {
				want++
			}
		}
		if result.Skipped[dependent] != want || result.Sent != 5-want {
			t.Errorf("%s: skipped %v, want %d", c.write.Name, result.Skipped, want)
		}
	}
}

// TestReplayDependentWrites: with writes, one that cannot be made keeps those back which follow from it, unless it was left
// out on purpose.
func TestReplayDependentWrites(t *testing.T) {
	create, update := asked("POST", "/rest/flag_type", `{"name":"n","description":"d"}`, 201), asked("PUT", "/rest/flag_type/19", "{}", 200)
	create.Unsendable = "its payload was left out"
	for _, c := range []struct {
		only []string
		made int
	}{{nil, 0}, {[]string{"flag_type.update"}, 1}} {
		server, base := reference(t, tracker.Options{})
		result := replay(t, []recording.Exchange{create, update}, recording.ReplayOptions{Tracker: base, Writes: true, Only: c.only})
		if result.Sent != c.made || result.Skipped[dependent] != 1-c.made {
			t.Errorf("only %v: %d sent, skipped %v, wrote %v", c.only, result.Sent, result.Skipped, server.Journal())
		}
	}
}
