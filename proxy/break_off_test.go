package proxy_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestAnswersToHTTP10ThatBreakOff: a client that speaks HTTP/1.0 takes the end of a connection for the end of an answer, so one
// that broke off must not end like that.
func TestAnswersToHTTP10ThatBreakOff(t *testing.T) {
	tracker, base := behind(t, "", nil)
	whole := true
	tracker.answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		if !whole {
			panic(http.ErrAbortHandler)
		}
	}
	read := func() (string, error) {
		connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET /page.cgi HTTP/1.0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(connection)
		return string(text), err
	}
	if text, err := read(); err != nil || !strings.HasSuffix(text, "\r\n\r\nhalf") {
		t.Errorf("a whole answer: %q, %v", text, err)
	}
	whole = false
	if text, err := read(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an answer that broke off: %q, %v", text, err)
	}
}
