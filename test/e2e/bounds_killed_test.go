package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
)

// Of a keyed create whose process was killed the outcome is unknown, and another process that shares the state says so within a
// minute. Of one whose process lives it says that it runs, however long that takes.
func TestKeyedCreateOfAKilledProcess(t *testing.T) {
	t.Parallel()
	var creates atomic.Int64
	release := make(chan struct{})
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPost {
			_, _ = io.WriteString(w, "{}")
			return
		}
		creates.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":77}`)
	}))
	defer tracker.Close()
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	_, candidate := startTracker(t, process.FreeAddress(t))
	file := filepath.Join(t.TempDir(), "portico.yaml")
	text := fmt.Sprintf("trackers:\n  main: {url: %q, dialect: bugzilla-5, timeout: 5m}\n  other: {url: %q}\nprimary: main\ncandidate: other\nstate: %q\ncache: {scope: off}\n",
		tracker.URL, candidate, process.Postgres(t))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first := process.Serve(t, nil, "serve", "--config", file)
	second := process.Serve(t, nil, "serve", "--config", file)
	killed, living := &client{base: first.Clients, keys: keys(t)}, &client{base: second.Clients, keys: keys(t)}
	create := func(key string) ask {
		return ask{
			method: http.MethodPost, path: "/rest/flag_type", user: "admin", body: fmt.Sprintf(`{"name":%q,"description":"made by a test"}`, key),
			header: http.Header{"Idempotency-Key": {key}},
		}
	}
	lost, answered := begin(killed, create("killed")), begin(living, create("living"))
	process.Eventually(t, "both creates have reached the tracker", func() bool { return creates.Load() == 2 })
	living.do(t, create("killed")).refused(t, http.StatusConflict, 200409)
	first.Kill(t)
	<-lost
	begun := time.Now()
	got := living.do(t, create("killed"))
	for ; got.status == http.StatusConflict && time.Since(begun) < time.Minute; got = living.do(t, create("killed")) {
		time.Sleep(100 * time.Millisecond)
	}
	got.refused(t, http.StatusGatewayTimeout, 200504)
	t.Logf("known after %v", time.Since(begun))
	if !strings.Contains(got.header.Get("Portico-Error"), "outcome=unknown") {
		t.Errorf("headers %v", got.header)
	}
	living.do(t, create("living")).refused(t, http.StatusConflict, 200409)
	free()
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("the create of the living process got %d", status)
	}
	living.do(t, create("living")).ok(t, http.StatusCreated)
	living.do(t, create("killed")).refused(t, http.StatusGatewayTimeout, 200504)
	if n := creates.Load(); n != 2 {
		t.Errorf("the tracker was asked for %d creates, want 2", n)
	}
}

// begin sends a request and gives its status later, 0 for none.
func begin(c *client, a ask) <-chan int {
	status := make(chan int, 1)
	go func() {
		got, _ := c.try(5*time.Minute, a)
		status <- got
	}()
	return status
}
