package recording_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"portico/test/process"
	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

// answering is a tracker that says one thing to everything.
func answering(t *testing.T, status int, kind, text string) string {
	t.Helper()
	return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		if status != http.StatusNotModified {
			fmt.Fprint(w, text)
		}
	})).String()
}

// TestReplayPages: what servers say instead of a tracker is no answer: of the tracker that is right it is compared with nothing,
// and of the other one it is a failure.
func TestReplayPages(t *testing.T) {
	types := answering(t, http.StatusOK, "application/json", `{"bug":[],"attachment":[]}`)
	refused := answering(t, http.StatusNotFound, "application/json", `{"error":true,"code":51,"message":"no"}`)
	down, login := answering(t, http.StatusServiceUnavailable, "text/html", "<html>"), answering(t, http.StatusOK, "text/html", "<html>")
	text, nothing := answering(t, http.StatusOK, "text/plain", "OK"), answering(t, http.StatusOK, "application/json", "")
	unchanged := answering(t, http.StatusNotModified, "application/json", "")
	for name, test := range map[string]struct {
		right, judged, accept string
		dropped               bool
		found                 string
	}{
		"both down":          {right: down, judged: down, dropped: true},
		"both want a login":  {right: login, judged: login, dropped: true},
		"both say OK":        {right: text, judged: text, dropped: true},
		"both say nothing":   {right: nothing, judged: nothing, dropped: true},
		"the right one down": {right: down, judged: types, dropped: true},
		"candidate down":     {right: types, judged: down, found: "failure failure"},
		"candidate's login":  {right: refused, judged: login, found: "failure failure"},
		"both refuse":        {right: refused, judged: refused},
		"both unchanged":     {right: unchanged, judged: unchanged, dropped: true},
		"pages":              {right: login, judged: login, accept: "text/html,*/*"},
		"down and pages":     {right: down, judged: down, accept: "text/html", dropped: true},
	} {
		list := flagTypeReads(2)
		if test.accept != "" {
			for i := range list {
				list[i].Request.Headers["accept"] = test.accept
			}
		}
		r := replay(t, list, recording.ReplayOptions{Tracker: test.judged, Against: test.right, Target: 0.9}).Report
		if dropped := r.Dropped[string(verdict.DropOtherFailed)] == 2 && r.Verdict == verdict.Inconclusive; dropped != test.dropped {
			t.Errorf("%s: %s, dropped %v", name, r.Verdict, r.Dropped)
		}
		if found := describe(r); test.found == "" && found != "" || !strings.Contains(found, test.found) {
			t.Errorf("%s: found %q, want %q", name, found, test.found)
		}
	}
}

// TestReplayConditional: a tracker gets no condition of a recording, so that there is content to compare. A recorded 304 has none.
func TestReplayConditional(t *testing.T) {
	tagged := func(tag, name string) string {
		return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			fmt.Fprintf(w, `{"bug":[{"id":1,"name":%q}],"attachment":[]}`, name)
		})).String()
	}
	old, same, other := tagged("a", "review"), tagged("b", "review"), tagged("a", "another")
	list := flagTypeReads(2)
	for i, name := range []string{"if-none-match", "If-None-Match"} {
		list[i].Request.Headers[name] = "a"
		list[i].Response = &recording.Response{Status: http.StatusNotModified, Headers: map[string]string{"etag": "a"}}
	}
	for name, test := range map[string]struct {
		judged, against              string
		compared, confirmed, dropped int64
	}{
		"recorded":       {same, "", 0, 0, 2},
		"another tag":    {same, old, 2, 0, 0},
		"another tag, 2": {old, same, 2, 0, 0},
		"the same tag":   {other, old, 2, 2, 0},
	} {
		r := replay(t, list, recording.ReplayOptions{Tracker: test.judged, Against: test.against}).Report
		if r.Overall.Compared != test.compared || r.Overall.Confirmed != test.confirmed || r.Dropped[string(verdict.DropNotModified)] != test.dropped {
			t.Errorf("%s: %+v, dropped %v, found\n%s", name, r.Overall, r.Dropped, describe(r))
		}
	}
}

// TestReplayPagesRecorded: the page of a server that was down is nothing to compare with either.
func TestReplayPagesRecorded(t *testing.T) {
	list := flagTypeReads(1)
	list[0].Response = &recording.Response{Status: http.StatusServiceUnavailable, HTML: true, Headers: map[string]string{"content-type": "text/html"}}
	r := replay(t, list, recording.ReplayOptions{Tracker: answering(t, http.StatusServiceUnavailable, "text/html", "<html>")}).Report
	if r.Overall.Compared != 0 || r.Dropped[string(verdict.DropUnreadable)] != 1 {
		t.Errorf("%+v, dropped %v", r.Overall, r.Dropped)
	}
}

// TestReplayMessagesLeftOut: a recording that leaves the texts of messages out does so everywhere, also where one was overlooked.
func TestReplayMessagesLeftOut(t *testing.T) {
	said := func(message string) recording.Exchange {
		e := asked(http.MethodGet, "/rest/bug/99/attachment", "", http.StatusNotFound)
		e.Response.Body = []byte(`{"error":true,"code":101,"message":"` + message + `"}`)
		e.Response.Headers = map[string]string{"content-type": "application/json"}
		return e
	}
	base := answering(t, http.StatusNotFound, "application/json", `{"error":true,"code":101,"message":"Bug #99 does not exist."}`)
	if r := replay(t, []recording.Exchange{said("(text)"), said("another")}, recording.ReplayOptions{Tracker: base}).Report; len(r.Findings) > 0 {
		t.Errorf("found %s", describe(r))
	}
	if r := replay(t, []recording.Exchange{said("another")}, recording.ReplayOptions{Tracker: base}).Report; len(r.Findings) != 1 {
		t.Errorf("in a recording with texts found %q", describe(r))
	}
}

// endless is a tracker whose answers have no end, compressed or not.
func endless(t *testing.T, packed bool) string {
	t.Helper()
	return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasPrefix(r.URL.Path, "/rest/flag_type") {
			fmt.Fprint(w, "{}")
			return
		}
		to, many := io.Writer(w), 1<<30
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
			zipped := gzip.NewWriter(w)
			defer zipped.Close()
			to, many = zipped, 1<<14
		}
		for range many {
			if _, err := io.WriteString(to, "                "); err != nil {
				return
			}
		}
	})).String()
}

// endlessHead is a tracker that goes on sending headers.
func endlessHead(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request, _ := io.ReadAll(io.LimitReader(conn, 40))
				if !strings.Contains(string(request), "/rest/flag_type") {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
					return
				}
				_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
				for err == nil {
					_, err = io.WriteString(conn, "X-More: "+strings.Repeat("x", 1000)+"\r\n")
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// TestReplayEndless: an answer without an end is a failure of the candidate's, and of the other one nothing to compare with.
func TestReplayEndless(t *testing.T) {
	right, _ := scripted(t, always(`"name":"a"`))
	for name, sick := range map[string]string{"body": endless(t, false), "packed": endless(t, true), "head": endlessHead(t)} {
		o := recording.ReplayOptions{Tracker: sick, Against: right, MaxBody: 64 << 10}
		if r := replay(t, flagTypeReads(1), o).Report; !strings.Contains(describe(r), `became "endless"`) {
			t.Errorf("%s: %+v, found %q", name, r.Overall, describe(r))
		}
		o.Tracker, o.Against = right, sick
		if r := replay(t, flagTypeReads(1), o).Report; r.Overall.Compared != 0 || r.Overall.Dropped != 1 || r.Overall.Prevented != 0 || r.Verdict != verdict.Inconclusive {
			t.Errorf("%s of the one that is right: %+v, dropped %v", name, r.Overall, r.Dropped)
		}
	}
}
