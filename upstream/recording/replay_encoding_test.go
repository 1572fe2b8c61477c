package recording_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"portico/test/process"
	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

// compressing is a tracker with a flag type of that name. It orders members differently each time, and has a content encoding:
// only for clients that accept it, or for every client.
func compressing(t *testing.T, name, coding string, always bool, as func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var asked atomic.Int64
	return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		members := []string{`"id":1`, fmt.Sprintf(`"name":%q`, name)}
		if asked.Add(1)%2 == 0 {
			members[0], members[1] = members[1], members[0]
		}
		var body bytes.Buffer
		to := as(&body)
		fmt.Fprintf(to, `{"bug":[{%s}],"attachment":[]}`, strings.Join(members, ","))
		_ = to.Close()
		w.Header().Set("Content-Type", "application/json")
		if !always && !strings.Contains(r.Header.Get("Accept-Encoding"), coding) {
			fmt.Fprintf(w, `{"bug":[{%s}],"attachment":[]}`, strings.Join(members, ","))
			return
		}
		w.Header().Set("Content-Encoding", coding)
		_, _ = w.Write(body.Bytes())
	})).String()
}

func gzipped(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func zlibbed(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
func deflated(w io.Writer) io.WriteCloser {
	to, _ := flate.NewWriter(w, flate.BestSpeed) // the level is one
	return to
}

// untouched lets through what it gets.
type untouched struct{ io.Writer }

func (untouched) Close() error { return nil }

func asItIs(w io.Writer) io.WriteCloser { return untouched{w} }

// TestReplayCompressed: compressed answers are compared member by member, whoever asked for them; what cannot be read is never
// the same and never noise.
func TestReplayCompressed(t *testing.T) {
	list := flagTypeReads(3)
	for i := range list {
		list[i].Request.Headers["accept-encoding"] = "gzip, br"
	}
	for name, test := range map[string]struct {
		coding  string
		always  bool
		as      func(io.Writer) io.WriteCloser
		dropped string
	}{
		"when asked":   {coding: "gzip", as: gzipped},
		"not asked":    {coding: "br", as: asItIs},
		"always":       {coding: "gzip", always: true, as: gzipped},
		"another name": {coding: "x-gzip", always: true, as: gzipped},
		"deflate":      {coding: "deflate", always: true, as: zlibbed},
		"bare deflate": {coding: "deflate", always: true, as: deflated, dropped: "unreadable"},
		"identity":     {coding: "identity", always: true, as: asItIs},
		"unknown":      {coding: "br", always: true, as: asItIs, dropped: "unreadable"},
		"broken":       {coding: "gzip", always: true, as: asItIs, dropped: "unreadable"},
	} {
		right := compressing(t, "review", test.coding, test.always, test.as)
		for judged, confirmed := range map[string]int64{"review": 0, "other": 3} {
			o := recording.ReplayOptions{Tracker: compressing(t, judged, test.coding, test.always, test.as), Against: right}
			r := replay(t, list, o).Report
			if test.dropped != "" {
				if r.Overall.Compared != 0 || r.Dropped[test.dropped] != 3 || r.Verdict != verdict.Inconclusive {
					t.Errorf("%s, %s: %s, %+v, dropped %v", name, judged, r.Verdict, r.Overall, r.Dropped)
				}
				continue
			}
			if r.Overall.Compared != 3 || r.Overall.Confirmed != confirmed || r.Overall.Noisy != 0 {
				t.Errorf("%s, %s: %+v, dropped %v, found\n%s", name, judged, r.Overall, r.Dropped, describe(r))
			}
		}
	}
}

// TestReplayCompressedByOne: what only the candidate compresses in an unknown way counts against it.
func TestReplayCompressedByOne(t *testing.T) {
	right := compressing(t, "review", "identity", true, asItIs)
	r := replay(t, flagTypeReads(1), recording.ReplayOptions{Tracker: compressing(t, "review", "br", true, asItIs), Against: right}).Report
	if r.Overall.Compared != 0 || r.Overall.Prevented != 1 {
		t.Errorf("%+v, dropped %v", r.Overall, r.Dropped)
	}
}

// TestReplayCompressedRecording: a recorded answer whose text was compressed is compared with nothing.
func TestReplayCompressedRecording(t *testing.T) {
	judged := compressing(t, "review", "identity", true, asItIs)
	for _, test := range []struct {
		recorded          recording.Response
		compared, dropped int64
	}{
		{recording.Response{Body: packed(`{"attachment":[],"bug":[{"name":"review","id":1}]}`)}, 1, 0},
		{recording.Response{Elision: recording.Elision{Size: 100}}, 0, 1},
	} {
		list := flagTypeReads(1)
		test.recorded.Status = http.StatusOK
		test.recorded.Headers = map[string]string{"content-type": "application/json", "content-encoding": "gzip"}
		list[0].Response = &test.recorded
		r := replay(t, list, recording.ReplayOptions{Tracker: judged}).Report
		if r.Overall.Compared != test.compared || r.Dropped["unreadable"] != test.dropped || len(r.Findings) > 0 {
			t.Errorf("%+v, dropped %v, found\n%s", r.Overall, r.Dropped, describe(r))
		}
	}
}

// TestRecorderUnpacks: the text of a compressed response is in the file, without credentials, and the client gets the response
// as it is. What cannot be read stays a digest.
func TestRecorderUnpacks(t *testing.T) {
	for name, test := range map[string]struct {
		body   func(string) []byte
		isText bool
	}{
		"gzip":   {packed, true},
		"broken": {func(text string) []byte { return packed(text)[:30] }, false},
	} {
		var text bytes.Buffer
		recorder := recording.NewRecorder(recording.RecorderOptions{To: &text})
		body := test.body(`{"bug":[{"name":"review","token":"SecretOfTheTracker"}],"attachment":[]}`)
		front := httptest.NewServer(recorder.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(body)
		})))
		answer := send(t, front.URL, http.MethodGet, "/rest/flag_type/WebShop", "", http.Header{"Accept-Encoding": {"gzip"}})
		front.Close()
		_, err := recorder.Close()
		must(t, err)
		e, err := recording.NewReader(&text).Next()
		must(t, err)
		_, isPacked := e.Response.Headers["content-encoding"]
		if isPacked == test.isText || strings.Contains(string(e.Response.Body), `"review"`) != test.isText || bytes.Contains(e.Response.Body, []byte("SecretOf")) {
			t.Errorf("%s: recorded is %+v", name, e.Response)
		}
		if !bytes.Equal(answer.Body, body) {
			t.Errorf("%s: the client got %q", name, answer.Body)
		}
	}
}

// packed compresses a text with gzip.
func packed(text string) []byte {
	var body bytes.Buffer
	to := gzipped(&body)
	fmt.Fprint(to, text)
	_ = to.Close()
	return body.Bytes()
}
