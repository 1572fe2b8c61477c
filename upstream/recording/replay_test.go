package recording_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/test/wire"
	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

const wireRecordings = "../../test/wire/testdata/bugzilla-5.2.jsonl"

// reference starts a reference tracker.
func reference(t *testing.T, o tracker.Options) (*tracker.Server, string) {
	t.Helper()
	s := process.Reference(t, o)
	return s, process.Listen(t, s).String()
}

// from gives exchanges one after the other.
func from(list []recording.Exchange) func() (recording.Exchange, error) {
	return func() (recording.Exchange, error) {
		if len(list) == 0 {
			return recording.Exchange{}, io.EOF
		}
		e := list[0]
		list = list[1:]
		return e, nil
	}
}

func replay(t *testing.T, list []recording.Exchange, o recording.ReplayOptions) recording.Result {
	t.Helper()
	o.ConfirmAfter, o.Timeout = time.Millisecond, 30*time.Second
	result, err := recording.Replay(t.Context(), from(list), o)
	must(t, err)
	return result
}

func describe(report verdict.Report) string {
	var out strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintf(&out, "%s %s %s: %d times, %s\n", f.Operation, f.Class, f.Path, f.Count, f.Note)
	}
	return out.String()
}

// TestReplayWireRecordings: the recordings of a real tracker load, and the reference tracker answers like it.
func TestReplayWireRecordings(t *testing.T) {
	list, err := wire.Load(wireRecordings)
	must(t, err)
	_, base := reference(t, tracker.Options{})
	result := replay(t, list, recording.ReplayOptions{Tracker: base, Writes: true})
	if r := result.Report; result.Sent != len(list) || r.Overall.Compared < 900 || len(r.Findings) > 0 {
		t.Errorf("%d of %d sent, skipped %v, %d compared, found\n%s", result.Sent, len(list), result.Skipped, r.Overall.Compared, describe(r))
	}
	server, base := reference(t, tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}})
	result = replay(t, list, recording.ReplayOptions{Tracker: base, Only: []string{"flag_type.get", "att.*"}})
	if r := result.Report; r.Verdict != verdict.Fail || !strings.Contains(describe(r), "missing $.bug[id].is_multiplicable") || result.Skipped["changes something, and --writes is not given"] == 0 {
		t.Errorf("%s, skipped %v, found\n%s", r.Verdict, result.Skipped, describe(r))
	}
	if writes := server.Journal(); len(writes) > 0 {
		t.Errorf("without --writes it has written %v", writes)
	}
}

// taken records some requests to a demo tracker.
func taken(t *testing.T) []recording.Exchange {
	t.Helper()
	var text bytes.Buffer
	recorder := recording.NewRecorder(recording.RecorderOptions{To: &text})
	behind := process.Reference(t, tracker.Options{Seed: tracker.SeedDemo})
	r := recordedTracker{Recorder: recorder, front: httptest.NewServer(recorder.Handler(behind))}
	key := tracker.Keys(tracker.SeedDemo)["developer@demo.example"]
	for range 4 {
		send(t, r.front.URL, "GET", "/rest/flag_type/WebShop?api_key="+key, "", nil)
		send(t, r.front.URL, "GET", "/rest/bug/1/attachment", "", http.Header{"X-Bugzilla-Api-Key": {"wrong " + key}})
	}
	send(t, r.front.URL, "PUT", "/rest/bug/attachment/1", `{"summary":"new","Bugzilla_api_key":"`+key+`"}`, http.Header{"Content-Type": {"application/json"}})
	send(t, r.front.URL, "GET", "/rest/bug/attachment/1", "", nil)
	send(t, r.front.URL, "GET", "/rest/bug/attachment/99", "", nil)
	list, _ := kept(t, r, &text)
	return list
}

func keys(list []recording.Exchange) map[string]string {
	key, values := tracker.Keys(tracker.SeedDemo)["developer@demo.example"], map[string]string{}
	for _, e := range list {
		for _, name := range e.Callers {
			values[name] = key
		}
	}
	return values
}

// TestReplayOwnRecordings: what was recorded is the same when it is replayed with the keys.
func TestReplayOwnRecordings(t *testing.T) {
	list := taken(t)
	demo := func(q ...tracker.Quirk) tracker.Options { return tracker.Options{Seed: tracker.SeedDemo, Quirks: q} }
	server, base := reference(t, demo())
	result := replay(t, list, recording.ReplayOptions{Tracker: base, Values: keys(list), Writes: true})
	if result.Report.Overall.Compared != 11 || len(result.Report.Findings) > 0 || result.Report.Verdict != verdict.Inconclusive || len(server.Journal()) != 1 {
		t.Errorf("got %+v\n%s", result, describe(result.Report))
	}
	result = replay(t, list, recording.ReplayOptions{Tracker: base})
	if result.Skipped["there is no value for caller-1; use --key or --keys"] != 4 {
		t.Errorf("without keys: skipped %v", result.Skipped)
	}
}

// flagTypesOf is a tracker that gives two flag types, and each time other descriptions of those that are empty.
func flagTypesOf(t *testing.T, first, second string) string {
	t.Helper()
	var asked atomic.Int64
	return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		random := fmt.Sprint("no. ", asked.Add(1))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"bug":[{"id":1,"description":%q},{"id":2,"description":%q}],"attachment":[]}`, cmp.Or(first, random), cmp.Or(second, random))
	})).String()
}

// TestReplayNoiseIsOfOnePlace: where the tracker that is right varies excuses neither the same field of another object, nor a
// tracker that varies by itself.
func TestReplayNoiseIsOfOnePlace(t *testing.T) {
	list := []recording.Exchange{asked(http.MethodGet, "/rest/flag_type/A", "", http.StatusOK)}
	for name, test := range map[string]struct {
		right, judged [2]string
		found         bool
	}{
		"beside noise":    {[2]string{"", "right"}, [2]string{"", "wrong"}, true},
		"only one varies": {[2]string{"a", "b"}, [2]string{"", "b"}, true},
		"the right one":   {[2]string{"", "b"}, [2]string{"a", "b"}, false},
	} {
		o := recording.ReplayOptions{Tracker: flagTypesOf(t, test.judged[0], test.judged[1]), Against: flagTypesOf(t, test.right[0], test.right[1])}
		if found := describe(replay(t, list, o).Report); strings.Contains(found, "value $.bug[id].description") != test.found {
			t.Errorf("%s: found %q", name, found)
		}
	}
}

// TestReplaySlowness: a tracker that takes longer than it may is a finding, as it is of the comparison of clients' calls.
func TestReplaySlowness(t *testing.T) {
	fast := flagTypesOf(t, "a", "b")
	to, _ := url.Parse(fast)
	slow := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(80 * time.Millisecond)
		httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
	}))
	list := slices.Repeat([]recording.Exchange{asked(http.MethodGet, "/rest/flag_type/A", "", http.StatusOK)}, 5)
	o := recording.ReplayOptions{Tracker: slow.String(), Against: fast, Target: 0.9, Latency: verdict.LatencyTarget{Ratio: 2, Slack: 40 * time.Millisecond, Least: 5}}
	if r := replay(t, list, o).Report; r.Verdict != verdict.Fail || !strings.Contains(describe(r), "latency latency.p50: 1 times") {
		t.Errorf("the slow one: %s, found %q", r.Verdict, describe(r))
	}
	o.Tracker = fast
	if r := replay(t, list, o).Report; r.Verdict != verdict.Pass {
		t.Errorf("the fast one: %s, found %q", r.Verdict, describe(r))
	}
}

// TestReplayLag: a difference that is gone when both are asked again is no finding.
func TestReplayLag(t *testing.T) {
	list := taken(t)
	server, first := reference(t, tracker.Options{Seed: tracker.SeedDemo})
	_, second := reference(t, tracker.Options{Follows: server, Quirks: []tracker.Quirk{tracker.QuirkLag}})
	key := tracker.Keys(tracker.SeedDemo)["developer@demo.example"]
	send(t, first, "PUT", "/rest/bug/attachment/1?api_key="+key, `{"summary":"newer"}`, http.Header{"Content-Type": {"application/json"}})
	o := recording.ReplayOptions{Tracker: second, Against: first, Only: []string{"attachment.get"}, ConfirmAfter: 600 * time.Millisecond, Timeout: 30 * time.Second}
	result, err := recording.Replay(t.Context(), from(list), o)
	if r := result.Report; err != nil || len(r.Findings) > 0 || r.Overall.Transient != 1 {
		t.Errorf("%v, %d in passing, found\n%s", err, r.Overall.Transient, describe(r))
	}
}

// TestReplayUnreachable: a tracker that is not there is an error and no finding; one that goes away is a finding.
func TestReplayUnreachable(t *testing.T) {
	_, base := reference(t, tracker.Options{})
	const gone = "http://127.0.0.1:1"
	for _, o := range []recording.ReplayOptions{{Tracker: gone, Against: base}, {Tracker: base, Against: gone}} {
		o.Timeout = 30 * time.Second
		if _, err := recording.Replay(t.Context(), from(nil), o); err == nil {
			t.Errorf("no error says that there is no tracker: %+v", o)
		}
	}
	server, base := reference(t, tracker.Options{Seed: tracker.SeedDemo})
	server.SetFaults([]tracker.Fault{{Op: "attachment.*", Kind: tracker.FaultResetBefore}})
	list := taken(t)
	if result := replay(t, list, recording.ReplayOptions{Tracker: base, Values: keys(list)}); !strings.Contains(describe(result.Report), "failure failure") {
		t.Errorf("found\n%s", describe(result.Report))
	}
}

// TestReplayKeyInQueryAndHeader: trackers take ; for & in a query, and refuse a key that is there twice. Only keys go into it.
func TestReplayKeyInQueryAndHeader(t *testing.T) {
	var seen []string
	base := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/version") {
			_, _ = io.WriteString(w, `{"version":"5.2"}`)
			return
		}
		seen = append(seen, r.URL.RawQuery)
		_, _ = io.WriteString(w, `{"bug":[],"attachment":[]}`)
	}))
	request := func(query, header, value string) recording.Exchange {
		return recording.Exchange{
			Operation: mapping.OpFlagTypes, Callers: []string{"caller-1"}, Response: &recording.Response{Status: 200, Body: []byte(`{"bug":[],"attachment":[]}`)},
			Request: recording.Request{Method: "GET", Path: "/rest/flag_type/P?" + query, Headers: map[string]string{header: value}},
		}
	}
	const key = "X-Bugzilla-Api-Key"
	replay(t, []recording.Exchange{
		request("x=1;api_key={{caller-1}}", key, "{{caller-1}}"), request("x=1;y=2", key, "{{caller-1}}"), request("y=3", "Authorization", "Basic {{caller-1}}"),
	}, recording.ReplayOptions{
		Tracker: base.String(), Values: map[string]string{"caller-1": "key"},
	})
	if want := []string{"x=1;api_key=key", "x=1;y=2&Bugzilla_api_key=key", "y=3"}; !slices.Equal(slices.Compact(seen), want) {
		t.Errorf("sent %q, want %q", seen, want)
	}
}
