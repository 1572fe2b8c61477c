package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/test/process"
	"portico/test/tracker"
)

// What the reference tracker does on demand, and in time.

// TestReferenceFaults: a fault before the operation replaces it, one after it spoils the response. A request that gets no response in time has
// the status 0.
func TestReferenceFaults(t *testing.T) {
	for _, c := range []struct {
		kind             string
		status, executed int
		// looks matches the headers and the body.
		looks string
	}{
		{"error500", 500, 0, "<html"},
		{"html200", 200, 0, "<html"},
		{"empty200", 200, 0, `^[^{]*\r\n\r\n$`},
		{"100500-with-201", 201, 0, `"code":100500`},
		{"reset-before", 0, 0, ""}, {"bad-status", 0, 0, ""}, {"hang-before", 0, 0, ""},
		{"reset-after-headers", 0, 1, ""}, {"reset-mid-body", 0, 1, ""}, {"wrong-length", 0, 1, ""}, {"close-after-commit", 0, 1, ""},
		{"endless-headers", 0, 1, ""}, {"gzip-lie", 0, 1, ""}, {"hang-after-headers", 0, 1, ""},
		{"truncate-json", 201, 1, `\{"ids"$`},
		{"wrong-content-type", 201, 1, `Content-Type: text/plain(?s:.*)"ids":\[16\]`},
		{"slow,delay=20ms", 201, 1, `"ids":\[16\]`}, {"drip,delay=1ms", 201, 1, `"ids":\[16\]`},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			fault, err := tracker.ParseFault("op=attachment.create,kind=" + c.kind)
			must(t, err)
			server := process.Reference(t, tracker.Options{Faults: []tracker.Fault{fault}})
			direct := &client{base: process.Listen(t, server).String()}
			create := ask{method: "POST", path: "/rest/bug/7/attachment?api_key=" + keys()["dev"], body: upload(`"content_type":"text/plain"`)}
			if c.status == 0 {
				if status, _ := direct.try(time.Second, create); status != 0 {
					t.Errorf("status %d", status)
				}
			} else {
				got := direct.do(t, create)
				head := &strings.Builder{}
				_ = got.header.Write(head)
				if text := head.String() + "\r\n" + string(got.body); got.status != c.status || !regexp.MustCompile(c.looks).MatchString(text) {
					t.Errorf("status %d: %s", got.status, text)
				}
			}
			server.SetFaults(nil)
			list, _ := direct.get(t, "", "/rest/bug/7/attachment").tree(t).(map[string]any)
			if made := len(lookup(list, "bugs.7.*")); made != c.executed || len(server.Journal()) != c.executed {
				t.Errorf("%d attachments were made, and the journal has %d entries", made, len(server.Journal()))
			}
		})
	}
}

// TestKeepaliveDrop: the response is whole and promises nothing about the connection, which is closed.
func TestKeepaliveDrop(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", process.Listen(t, process.Reference(t, optionsWith(tracker.QuirkKeepaliveDrop))).Host)
	must(t, err)
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /rest/version HTTP/1.1\r\nHost: x\r\n\r\n") // what comes back tells
	in := bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	must(t, err)
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "5.2+") || response.Close {
		t.Errorf("%v, close announced: %v, %s", err, response.Close, body)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the connection is still open: %v", err)
	}
}

// TestUnreadBody: a request that is refused for its path is read whole all the same, so the end of its connection is no reset.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", process.Listen(t, process.Reference(t, tracker.Options{Dialect: tracker.DialectBMO})).Host)
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "PUT /rest/nope HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n"+strings.Repeat("x", 100000))
	must(t, err)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := io.ReadAll(conn); err != nil || !strings.Contains(string(got), `"code":32614`) {
		t.Errorf("%v, after %s", err, got)
	}
}

// memory is a response writer for tests in made-up time, in which sockets do not work.
type memory struct {
	header http.Header
	strings.Builder
}

func (m *memory) Header() http.Header { return m.header }
func (m *memory) WriteHeader(int)     {}
func (m *memory) Flush()              {}

// says gives the response of a tracker to a request of one address.
func says(t *testing.T, s *tracker.Server, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://tracker.example"+path, strings.NewReader(body))
	must(t, err)
	request.RequestURI, request.RemoteAddr = path, "10.0.0.1:99"
	request.Header.Set("Content-Type", "application/json")
	w := &memory{header: http.Header{}}
	s.ServeHTTP(w, request)
	return w.String()
}

// TestBlockEnds: an address is served again an hour after its last attempt.
func TestBlockEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := process.Reference(t, tracker.Options{Dialect: tracker.DialectBMO, RateLimit: 1})
		for i, want := range []string{`"bugs"`, `"error"`, "Too Many Requests", "Too Many Requests", `"bugs"`} {
			if got := says(t, s, "GET", "/rest/bug/1", ""); !strings.Contains(got, want) {
				t.Errorf("read %d: %q is missing in %s", i, want, got)
			}
			time.Sleep([]time.Duration{time.Second, time.Second, time.Hour - time.Second, time.Hour, 0}[i])
		}
	})
}

// TestFollower: a tracker that follows another one shows the same data and has a journal of its own. One that lags shows writes of the other
// late, and nothing late once it has made a write itself.
func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := process.Reference(t, tracker.Options{})
		second := process.Reference(t, tracker.Options{Follows: first, Quirks: []tracker.Quirk{tracker.QuirkLag}})
		sees := func(s *tracker.Server, summary string) {
			t.Helper()
			if got := says(t, s, "GET", "/rest/bug/attachment/1?include_fields=summary", ""); !strings.Contains(got, `"`+summary+`"`) {
				t.Errorf("got %s, want the summary %q", got, summary)
			}
		}
		write := func(s *tracker.Server, summary string) {
			t.Helper()
			says(t, s, "PUT", "/rest/bug/attachment/1?api_key="+keys()["dev"], `{"summary":"`+summary+`"}`)
		}
		write(first, "one")
		sees(first, "one")
		time.Sleep(299 * time.Millisecond)
		sees(second, "public text")
		time.Sleep(2 * time.Millisecond)
		sees(second, "one")
		write(first, "two")
		write(second, "three")
		sees(first, "three")
		sees(second, "three")
		if a, b := len(first.Journal()), len(second.Journal()); a != 2 || b != 1 {
			t.Errorf("the journals have %d and %d entries", a, b)
		}
		second.Reset()
		sees(first, "public text")
		if len(first.Journal()) != 2 || len(second.Journal()) != 0 {
			t.Error("a reset empties the journal of the tracker that was reset, and no other")
		}
	})
}
