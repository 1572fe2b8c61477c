package recording_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/test/wire"
	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

// refusal is what a scripted tracker says in place of a flag type.
const refusal = `{"error":true,"code":51,"message":"gone"}`

// scripted is a tracker with one flag type, whose members are those that say gives for the first time that it is asked, for the
// second and so on.
func scripted(t *testing.T, say func(n int64) string) (base string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasPrefix(r.URL.Path, "/rest/flag_type") {
			fmt.Fprint(w, `{"version":"5.2"}`)
			return
		}
		said := say(asked.Add(1))
		if said == refusal {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, refusal)
			return
		}
		fmt.Fprintf(w, `{"bug":[{"id":1,%s}],"attachment":[]}`, said)
	})).String(), asked
}

func always(text string) func(int64) string { return func(int64) string { return text } }

func flagTypeReads(n int) []recording.Exchange {
	list := make([]recording.Exchange, n)
	for i := range list {
		list[i] = asked(http.MethodGet, "/rest/flag_type/A", "", http.StatusOK)
	}
	return list
}

// TestReplayAsksAgain both trackers where their responses differ, or the one that is judged where there is only a recording, and each row says what
// comes of it.
func TestReplayAsksAgain(t *testing.T) {
	a, b, refuses, broken := always(`"name":"a"`), always(`"name":"b"`), always(refusal), always("broken")
	until := func(last int64, first, then func(int64) string) func(int64) string {
		return func(n int64) string {
			if n <= last {
				return first(n)
			}
			return then(n)
		}
	}
	gone := until(1, b, always(`"name":"a","more":1`))
	many := func(n int64) string { return `"values":[` + strings.Repeat(fmt.Sprint(n, ","), 1<<17) + `0]` }
	unlike := func(int64) string { return `"other":1,` + many(0) }
	const cannotTell = "0 confirmed, 0 unstable, 0 transient, 0 noisy, found [], dropped map[other-failed:1]"
	for name, c := range map[string]struct {
		right, judged func(int64) string
		want          string
	}{
		"what the right one says seldom is noise all the same":             {until(4, a, b), b, "0 confirmed, 0 unstable, 0 transient, 1 noisy, found [], dropped map[]"},
		"a difference that is gone is a finding, whatever differs besides": {a, gone, "1 confirmed, 1 unstable, 0 transient, 0 noisy, found [unstable], dropped map[]"},
		"and so it is against a recording":                                 {nil, gone, "1 confirmed, 1 unstable, 0 transient, 0 noisy, found [unstable], dropped map[]"},
		"who is wrong first and then fails was wrong each time":            {a, until(1, b, refuses), "1 confirmed, 0 unstable, 0 transient, 0 noisy, found [reply], dropped map[]"},
		"and is not while the right one fails as well":                     {until(1, a, refuses), until(1, b, refuses), "0 confirmed, 0 unstable, 1 transient, 0 noisy, found [], dropped map[]"},
		"behind digests that differ each time nothing is seen":             {many, unlike, "0 confirmed, 0 unstable, 0 transient, 0 noisy, found [], dropped map[digest-noise:1]"},
		"the right one cannot be asked again":                              {until(1, b, broken), until(1, a, b), cannotTell},
		"nor for the last time":                                            {until(2, b, broken), until(1, a, b), cannotTell},
	} {
		list, options := flagTypeReads(1), recording.ReplayOptions{}
		options.Tracker, _ = scripted(t, c.judged)
		if c.right == nil {
			list[0].Response.Body = []byte(`{"bug":[{"id":1,` + a(1) + `}],"attachment":[]}`)
		} else {
			options.Against, _ = scripted(t, c.right)
		}
		r := replay(t, list, options).Report
		kinds, all := []string{}, r.Overall
		for _, f := range r.Findings {
			kinds = append(kinds, string(f.Kind))
		}
		got := fmt.Sprintf("%d confirmed, %d unstable, %d transient, %d noisy, found %v, dropped %v", all.Confirmed, all.Unstable, all.Transient, all.Noisy, kinds, r.Dropped)
		if wantCompared := int64(1 - len(r.Dropped)); got != c.want || all.Compared != wantCompared || r.Verdict == verdict.Pass {
			t.Errorf("%s: %s of %d, %s, want %s\n%s", name, got, all.Compared, r.Verdict, c.want, describe(r))
		}
	}
}

// TestReplayBelieves: what was confirmed three times is not asked about any more.
func TestReplayBelieves(t *testing.T) {
	right, _ := scripted(t, always(`"name":"a"`))
	judged, asked := scripted(t, always(`"name":"b"`))
	r := replay(t, flagTypeReads(5), recording.ReplayOptions{Tracker: judged, Against: right}).Report
	if asked.Load() != 3*2+2 || r.Overall.Confirmed != 5 {
		t.Errorf("asked %d times, %d confirmed", asked.Load(), r.Overall.Confirmed)
	}
}

// TestReplayKeepsABoundedNumberOfFindings: those beyond it count, and the report says so.
func TestReplayKeepsABoundedNumberOfFindings(t *testing.T) {
	const most, each = 10_000, 1000
	list, id := flagTypeReads(most/each+1), 0
	for i := range list {
		var types []string
		for end := min(id+each, most+1); id < end; id++ {
			types = append(types, fmt.Sprintf(`{"id":%d}`, id))
		}
		list[i].Response.Body = []byte(`{"attachment":[],"bug":[` + strings.Join(types, ",") + `]}`)
	}
	base := answering(t, http.StatusOK, "application/json", `{"attachment":[],"bug":[]}`)
	r := replay(t, list, recording.ReplayOptions{Tracker: base}).Report
	if v := r.Overall; len(r.Findings) != most || v.Confirmed != int64(len(list)) || v.Unlisted != 1 {
		t.Errorf("%d findings, %+v", len(r.Findings), v)
	}
}

// TestReplayWritesOnce: a write is not made again to find out whether its answer differs once more, and one whose answer is not
// recorded is no comparison.
func TestReplayWritesOnce(t *testing.T) {
	judged, sent := scripted(t, always(`"name":"b"`))
	list := []recording.Exchange{asked(http.MethodPost, "/rest/flag_type", "{}", http.StatusOK)}
	r := replay(t, list, recording.ReplayOptions{Tracker: judged, Writes: true}).Report
	if sent.Load() != 1 || r.Overall.Confirmed != 1 {
		t.Errorf("sent %d times, %d confirmed", sent.Load(), r.Overall.Confirmed)
	}
	list = []recording.Exchange{asked(http.MethodPost, "/rest/flag_type", "{}", 0)}
	r = replay(t, list, recording.ReplayOptions{Tracker: judged, Writes: true}).Report
	if sent.Load() != 2 || len(r.Operations) > 0 {
		t.Errorf("sent %d times, got %+v", sent.Load(), r.Operations)
	}
}

// TestReplayTimesOfTheRecording: what happened while the recording was made cannot happen then once more. Older times are the
// tracker's data.
func TestReplayTimesOfTheRecording(t *testing.T) {
	judged, _ := scripted(t, always(`"last_change_time":"2026-05-05T10:00:00Z"`))
	for recorded, found := range map[string]bool{"2020-02-02T08:00:00Z": false, "2019-02-02T08:00:00Z": true} {
		list := flagTypeReads(1)
		list[0].Response.Headers["date"] = "Sun, 02 Feb 2020 10:00:00 GMT"
		list[0].Response.Body = []byte(`{"bug":[{"id":1,"last_change_time":"` + recorded + `"}],"attachment":[]}`)
		if r := replay(t, list, recording.ReplayOptions{Tracker: judged}).Report; len(r.Findings) > 0 != found {
			t.Errorf("%s: found\n%s", recorded, describe(r))
		}
	}
}

// TestReplayThatIsBrokenOffPassesNothing, and what was being asked when it ended says nothing.
func TestReplayThatIsBrokenOffPassesNothing(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	right, _ := scripted(t, always(`"name":"a"`))
	judged, _ := scripted(t, func(n int64) string {
		if n == 3 {
			time.AfterFunc(50*time.Millisecond, end) // while it waits to ask again
			return `"name":"b"`
		}
		return `"name":"a"`
	})
	list := slices.Values(flagTypeReads(9))
	next, stop := iter.Pull(list)
	defer stop()
	result, err := recording.Replay(ctx, func() (recording.Exchange, error) {
		e, more := next()
		if !more {
			return e, io.EOF
		}
		return e, nil
	}, recording.ReplayOptions{Tracker: judged, Against: right, Target: 1, Timeout: 30 * time.Second, ConfirmAfter: 500 * time.Millisecond})
	all := result.Report.Overall
	if err == nil || result.Report.Verdict != verdict.Inconclusive || all.Verdict != verdict.Inconclusive || len(all.Reasons) == 0 {
		t.Errorf("%v: %s, %q", err, result.Report.Verdict, all.Reasons)
	}
	if all.Compared != 2 || all.Transient != 0 {
		t.Errorf("%d compared, %d in passing", all.Compared, all.Transient)
	}
}

const dependent = "its response depends on a request that was not made"

// TestReplayReadOnly: without writes, the recordings of a real tracker differ nowhere from one that has its first data.
func TestReplayReadOnly(t *testing.T) {
	list, err := wire.Load(wireRecordings)
	must(t, err)
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
