package transport

import (
	"bufio"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func x509Pool(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// droppingTracker behaves like the real one (clients.md section 4 row 18): it ends a kept connection after an answer
// without saying Connection: close. Worse, it takes a second request on it, does it, and then resets.
func droppingTracker(t *testing.T, applied *atomic.Int64, closes *atomic.Int64) *tracker {
	return rawTracker(t, func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method != http.MethodGet {
				applied.Add(1)
			}
			if r.Close {
				closes.Add(1)
			}
			if n > 0 {
				reset(c)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
}

func TestWritesAreNeitherLostNorSentTwice(t *testing.T) {
	var applied, closes atomic.Int64
	tr := droppingTracker(t, &applied, &closes)
	stack := newStack(t, Options{Retry: RetryOptions{Burst: 1000}})
	const writes = 30
	for range writes {
		if _, _, err := do(stack, get(t, tr.url)); err != nil {
			t.Fatalf("read: %v", err)
		}
		req := post(t, tr.url)
		req.Header["idempotency-key"] = []string{"1"}
		req.Header.Set("X-Idempotency-Key", "1")
		if _, _, err := do(stack, req); err != nil {
			t.Fatalf("write: %v", err)
		}
		if len(req.Header) != 2 {
			t.Fatal("the caller's header was changed")
		}
	}
	if applied.Load() != writes || closes.Load() != writes {
		t.Errorf("%d writes made, %d done, %d said Connection: close", writes, applied.Load(), closes.Load())
	}
}

func TestReplayKeysAreNotForwarded(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.Contains(strings.ToLower(name), "idempotency") {
				t.Errorf("forwarded %s", name)
			}
		}
		if r.Header.Get("X-Kept") != "yes" {
			t.Error("lost a header")
		}
	})
	req := post(t, tr.url)
	req.Header = http.Header{"Idempotency-Key": {"1"}, "iDEMPOTENCY-kEY": {"2"}, "X-Idempotency-Key": {"3"}, "X-Kept": {"yes"}}
	if _, _, err := do(newBase(t, BaseOptions{}), req); err != nil {
		t.Fatal(err)
	}
}

func TestReadsKeepConnections(t *testing.T) {
	conns := map[string]bool{}
	tr := newTracker(t, func(_ http.ResponseWriter, r *http.Request) { conns[r.RemoteAddr] = true })
	w := newBase(t, BaseOptions{})
	for range 5 {
		if _, _, err := do(w, get(t, tr.url)); err != nil {
			t.Fatal(err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("5 reads took %d connections", len(conns))
	}
	for range 5 {
		if _, _, err := do(w, post(t, tr.url)); err != nil {
			t.Fatal(err)
		}
	}
	if len(conns) != 6 {
		t.Errorf("5 reads and 5 writes took %d connections", len(conns))
	}
}
