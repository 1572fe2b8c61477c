package tracker_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/test/tracker"
)

func quirky(t *testing.T, q ...tracker.Quirk) front {
	return start(t, tracker.Options{Quirks: q})
}

func TestSlowReads(t *testing.T) {
	f := quirky(t, tracker.QuirkSlow)
	begin := time.Now()
	f.must("GET", "/rest/bug/attachment/1", "")
	if d := time.Since(begin); d < 200*time.Millisecond {
		t.Errorf("a slow read took %v", d)
	}
}

// TestLag: a read right after a write sees the old state, a later one the new.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tracker.New(tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkLag}})
		defer s.Close()
		summary := func() string {
			w := &recorder{header: http.Header{}}
			s.ServeHTTP(w, request(t, "GET", "/rest/bug/attachment/1?include_fields=summary", ""))
			return w.body.String()
		}
		s.ServeHTTP(&recorder{header: http.Header{}}, request(t, "PUT", "/rest/bug/attachment/1?"+devKey, `{"summary":"new"}`))
		if got := summary(); !strings.Contains(got, "public text") {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(299 * time.Millisecond)
		if got := summary(); !strings.Contains(got, "public text") {
			t.Errorf("after 299 ms: %s", got)
		}
		time.Sleep(2 * time.Millisecond)
		if got := summary(); !strings.Contains(got, `"new"`) {
			t.Errorf("after 301 ms: %s", got)
		}
	})
}

// recorder is a response writer for tests that need made-up time, in which sockets do not work.
type recorder struct {
	header http.Header
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Flush()                      {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func request(t *testing.T, method, path, body string) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), method, "http://tracker.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.RequestURI = path
	req.Header.Set("Content-Type", "application/json")
	return req
}

// TestKeepaliveDrop: the answer is whole, promises nothing about the connection, and the connection is closed.
func TestKeepaliveDrop(t *testing.T) {
	f := quirky(t, tracker.QuirkKeepaliveDrop)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	fmt.Fprintf(conn, "GET /rest/version HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := resp.Write(&b); err != nil || !strings.Contains(b.String(), "5.2+") || resp.Close {
		t.Errorf("%v, close announced: %v, %s", err, resp.Close, b.String())
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection is still open")
	}
}

func TestParsers(t *testing.T) {
	for _, q := range tracker.Quirks() {
		if got, err := tracker.ParseQuirk(string(q)); err != nil || got != q {
			t.Errorf("%s: %v %v", q, got, err)
		}
	}
	if _, err := tracker.ParseQuirk("nope"); err == nil || !strings.Contains(err.Error(), "slash-nodecode") {
		t.Errorf("an unknown quirk: %v", err)
	}
	if s, err := tracker.ParseSeed("demo"); s != tracker.SeedDemo || err != nil {
		t.Errorf("demo: %v %v", s, err)
	}
	if _, err := tracker.ParseSeed("x"); err == nil {
		t.Error("an unknown seed was taken")
	}
	f, err := tracker.ParseFault("op=flag_type.get, kind=slow,nth=3,percent=10,delay=2s")
	if want := (tracker.Fault{Op: "flag_type.get", Kind: tracker.FaultSlow, Nth: 3, Percent: 10, Delay: 2 * time.Second}); err != nil || f != want {
		t.Errorf("got %+v %v", f, err)
	}
	for _, bad := range []string{"", "kind=nope", "op=x", "kind=slow,nth=x", "kind=slow,percent=101", "kind=slow,what=1"} {
		if _, err := tracker.ParseFault(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
