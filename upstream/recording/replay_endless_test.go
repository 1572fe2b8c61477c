package recording_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

// endless is a tracker whose answers have no end, compressed or not.
func endless(t *testing.T, packed bool) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			to, many = zipped, 1<<20
		}
		for range many {
			if _, err := io.WriteString(to, "                "); err != nil {
				return
			}
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// endlessHead is a tracker that goes on sending headers.
func endlessHead(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
		o := recording.ReplayOptions{Tracker: sick, Against: right, MaxBody: 1 << 20}
		if r := replay(t, flagTypeReads(1), o).Report; !strings.Contains(describe(r), `became "endless"`) {
			t.Errorf("%s: %+v, found %q", name, r.Overall, describe(r))
		}
		o.Tracker, o.Against = right, sick
		if r := replay(t, flagTypeReads(1), o).Report; r.Overall.Compared != 0 || r.Overall.Dropped != 1 || r.Overall.Prevented != 0 || r.Verdict != verdict.Inconclusive {
			t.Errorf("%s of the one that is right: %+v, dropped %v", name, r.Overall, r.Dropped)
		}
	}
}
