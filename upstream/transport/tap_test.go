package transport

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func upload64MB(t *testing.T, url string) *http.Request {
	t.Helper()
	const size = 64 << 20
	req := request(t, t.Context(), http.MethodPost, url, "x")
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(io.LimitReader(zeros{}, size)), size, nil
	return req
}

// TestTrackerThatStopsReading: the wait for an answer begins after the last byte, so the sending needs a limit of its own.
func TestTrackerThatStopsReading(t *testing.T) {
	let := make(chan struct{})
	deaf := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-let })
	plain, secure := httptest.NewServer(deaf), httptest.NewTLSServer(deaf)
	t.Cleanup(func() { close(let); plain.Close(); secure.Close() })
	o := BaseOptions{ResponseHeaderTimeout: 200 * time.Millisecond, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig}
	for _, url := range []string{plain.URL, secure.URL} {
		begun := time.Now()
		_, _, err := do(newBase(t, o), upload64MB(t, url)) // whose own context ends after 10 s
		if took := time.Since(begun); ReasonOf(err) != Timeout || !OutcomeUnknown(err) || took > 5*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	}
}

// TestSlowTrackerMayTakeItsTime: the limit is on the pause, not on the whole.
func TestSlowTrackerMayTakeItsTime(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		for one := make([]byte, 1); ; {
			time.Sleep(30 * time.Millisecond)
			if _, err := there.Read(one); err != nil {
				return
			}
		}
	}()
	conn := &tap{Conn: here, pause: 300 * time.Millisecond}
	defer conn.Close()
	begun, text := time.Now(), strings.Repeat("x", 20)
	if n, err := conn.Write([]byte(text)); n != len(text) || err != nil || conn.sent.Load() != int64(len(text)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if took := time.Since(begun); took < conn.pause {
		t.Errorf("%v are no test", took)
	}
}

// TestLimitsOfOthersStand: crypto/tls says good-bye to a peer that may not listen, and does not wait long for it.
func TestLimitsOfOthersStand(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	conn := &tap{Conn: here, pause: time.Hour}
	for _, set := range []func(time.Time) error{conn.SetWriteDeadline, conn.SetDeadline} {
		_ = set(time.Now().Add(10 * time.Millisecond))
		if _, err := conn.Write([]byte("x")); err == nil {
			t.Error("written to nobody")
		}
	}
}

// TestTrackersTextIsNotTold: net/http quotes what it cannot read, and that may be a credential.
func TestTrackersTextIsNotTold(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, answer := range map[string]string{
		"header without colon": ok + "Set-Cookie Bugzilla_logincookie=SECRET\r\n\r\n",
		"no status line":       "Set-Cookie: Bugzilla_logincookie=SECRET oh\r\n\r\n",
		"no status":            "HTTP/1.1 SECRET x\r\n\r\n",
		"no length":            ok + "Content-Length: SECRET\r\n\r\n",
		"unknown encoding":     ok + "Transfer-Encoding: SECRET\r\n\r\n",
		"trailer":              ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nSet-Cookie SECRET\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			tr := rawTracker(t, respond(answer, nil))
			_, _, err := do(newBase(t, BaseOptions{}), get(t, tr.url))
			if err == nil || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%v", err)
			}
		})
	}
}
