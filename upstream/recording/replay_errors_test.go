package recording_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"portico/upstream/recording"
)

// refusing is a tracker that refuses everything, with some members of the error's besides.
func refusing(t *testing.T, others string) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":true,"code":101,"message":"Bug #99 does not exist."%s}`, others)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// TestReplayErrorsWhole: the other members of errors are compared too, as far as the recording has them.
func TestReplayErrorsWhole(t *testing.T) {
	recorded := asked(http.MethodGet, "/rest/bug/99/attachment", "", http.StatusNotFound)
	recorded.Response.Body = []byte(`{"error":true,"code":101,"message":"(text)","documentation":"(url)"}`)
	recorded.Response.Headers = map[string]string{"content-type": "application/json"}
	docs := `,"documentation":"https://a.example/"`
	for name, test := range map[string]struct{ judged, against, want string }{
		"equal":              {docs, docs, ""},
		"another address":    {`,"documentation":"https://b.example/"`, docs, "attachment.list value $.documentation"},
		"a member more":      {docs + `,"stack":[]`, docs, "attachment.list extra $.stack"},
		"address unrecorded": {docs, "", ""},
		"none at all":        {"", "", "attachment.list missing $.documentation"},
	} {
		o := recording.ReplayOptions{Tracker: refusing(t, test.judged)}
		if test.against != "" {
			o.Against = refusing(t, test.against)
		}
		report := replay(t, []recording.Exchange{recorded}, o).Report
		found := ""
		for _, f := range report.Findings {
			found += fmt.Sprintf("%s %s %s", f.Operation, f.Class, f.Path)
		}
		if found != test.want {
			t.Errorf("%s: found %q, want %q", name, found, test.want)
		}
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
	base := refusing(t, "")
	if r := replay(t, []recording.Exchange{said("(text)"), said("another")}, recording.ReplayOptions{Tracker: base}).Report; len(r.Findings) > 0 {
		t.Errorf("found %s", describe(r))
	}
	if r := replay(t, []recording.Exchange{said("another")}, recording.ReplayOptions{Tracker: base}).Report; len(r.Findings) != 1 {
		t.Errorf("in a recording with texts found %q", describe(r))
	}
}

// TestReplayMessagesThatSayNothing: none, null and an empty one are not the same.
func TestReplayMessagesThatSayNothing(t *testing.T) {
	read := []recording.Exchange{asked(http.MethodGet, "/rest/bug/99/attachment", "", http.StatusNotFound)}
	forms := []string{"", `,"message":null`, `,"message":""`}
	var bases []string
	for _, form := range forms {
		bases = append(bases, answering(t, http.StatusNotFound, "application/json", `{"error":true,"code":101`+form+`}`))
	}
	same := answering(t, http.StatusNotFound, "application/json", `{"code":101,"error":true}`)
	for i, judged := range append(bases, same) {
		for k, against := range bases {
			want := int64(1)
			if i == k || k == 0 && judged == same {
				want = 0
			}
			if r := replay(t, read, recording.ReplayOptions{Tracker: judged, Against: against}).Report; r.Overall.Confirmed != want || r.Overall.Compared != 1 {
				t.Errorf("%d against %d: %d of %d, want %d", i, k, r.Overall.Confirmed, r.Overall.Compared, want)
			}
		}
	}
}
