package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"portico/proxy"
)

// A client that looks at a response only when it has sent everything gets it.
func TestRefusalOfALargeBodyArrives(t *testing.T) {
	t.Parallel()
	const large = 12 << 20
	for name, c := range map[string]struct {
		head   string
		status int
		limit  int64
	}{
		"too many calls":   {"GET /rest/flag_type/P HTTP/1.1\r\nContent-Type: application/json\r\nX-Bugzilla-Api-Key: k\r\n", 429, 0},
		"no such method":   {"DELETE /rest/flag_type/1 HTTP/1.1\r\n", 404, 0},
		"compressed":       {"POST /rest/flag_type HTTP/1.1\r\nContent-Encoding: gzip\r\nX-Bugzilla-Api-Key: other\r\n", 400, 0},
		"too large":        {"POST /rest/bug/7/attachment HTTP/1.1\r\nX-Bugzilla-Api-Key: other\r\n", 413, 8 << 20},
		"no JSON":          {"POST /rest/flag_type HTTP/1.1\r\nX-Bugzilla-Api-Key: other\r\n", 400, 0},
		"a read of it all": {"GET /rest/flag_type/P HTTP/1.1\r\n", 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := proxy.Options{Rates: proxy.RateLimits{Keyed: proxy.Rate{PerSecond: 1, Burst: 1}}}
			options.Limits.Body = c.limit
			base := serve(t, options)
			text := c.head + fmt.Sprintf("Host: x\r\nContent-Length: %d\r\n\r\n", large) + strings.Repeat("x", large)
			if c.status == http.StatusTooManyRequests {
				ask(t, "GET", base+"/rest/flag_type/P", "", "X-Bugzilla-Api-Key", "k")
			}
			client := dial(t, base)
			_ = client.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(client, text); err != nil {
				t.Fatal("sending: ", err)
			}
			if got := client.exchange(t, ""); got.status != c.status {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// So does one that was told to go on and sends everything then, as the clients of some libraries do.
func TestRefusalAfterContinueArrives(t *testing.T) {
	const large = 12 << 20
	base := serve(t, proxy.Options{})
	client := dial(t, base)
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	head := fmt.Sprintf("POST /rest/flag_type HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", large)
	if _, err := io.WriteString(client, head); err != nil {
		t.Fatal(err)
	}
	if line, err := client.reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = client.reader.ReadString('\n')
	if _, err := io.WriteString(client, strings.Repeat("x", large)); err != nil {
		t.Fatal("sending: ", err)
	}
	if got := client.response(t); got.status != http.StatusBadRequest {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A client that stops sending at a refusal sees where the response ends, in whatever form it is.
func TestRefusalOfALargeBodyEnds(t *testing.T) {
	t.Parallel()
	base := serve(t, proxy.Options{})
	for _, accept := range []string{"application/json", "text/html", "text/javascript"} {
		client := dial(t, base)
		_ = client.SetDeadline(time.Now().Add(20 * time.Second))
		got := client.exchange(t, "DELETE /rest/flag_type/1 HTTP/1.1\r\nHost: x\r\nAccept: "+accept+"\r\nContent-Length: 12000000\r\n\r\nbegun")
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "32614") {
			t.Errorf("%s: %d %s", accept, got.status, got.body)
		}
	}
}
