package e2e

import (
	"fmt"
	"io"
	"net/http"
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
	tracker := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	_, candidate := startTracker(t, process.FreeAddress(t))
	file := process.File(t, "portico.yaml", fmt.Sprintf("trackers:\n  main: {url: %q, dialect: bugzilla-5, timeout: 5m}\n  other: {url: %q}\nprimary: main\ncandidate: other\nstate: %q\ncache: {scope: off}\n",
		tracker, candidate, process.Postgres(t)))
	first := process.Serve(t, nil, "serve", "--config", file)
	second := process.Serve(t, nil, "serve", "--config", file)
	killed, living := &client{base: first.Clients, keys: keys()}, &client{base: second.Clients, keys: keys()}
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

// An error that comes after the tracker has carried a create out does not lead to a second one where the client repeats it
// with its Idempotency-Key. And what docs/reference/errors.md says of errors holds: only those that Portico makes itself, other than
// web-server, and without outcome=unknown, prove that nothing was done.
func TestErrorsAfterExecution(t *testing.T) {
	t.Parallel()
	_, tracker := startTracker(t, process.FreeAddress(t))
	gateway := startSickTracker(t, tracker)
	p := startFacade(t, gateway.base, "TRACKERS_MAIN_DIALECT=bugzilla-5")
	creates := map[string]string{
		"/rest/flag_type":        `{"name":"NAME","description":"made by a test","target_type":"bug"}`,
		"/rest/bug/1/attachment": upload(`"content_type":"text/plain","comment":"NAME"`),
	}
	for _, c := range []struct {
		status int
		asJSON bool
	}{
		{400, false}, {401, false}, {403, false}, {404, false}, {409, false}, {413, false}, {422, false},
		{500, false}, {502, false}, {503, false}, {504, false}, {500, true}, {503, true},
	} {
		for path, body := range creates {
			name := fmt.Sprintf("%s %d %v", path, c.status, c.asJSON)
			key := fmt.Sprintf("%d-%v", c.status, c.asJSON)
			send := func() *reply {
				return p.do(t, ask{
					method: http.MethodPost, path: path, user: "admin", body: strings.Replace(body, "NAME", "n"+key, 1),
					header: http.Header{"Idempotency-Key": {key}},
				})
			}
			text, kind := fmt.Sprintf("<html><body>%d</body></html>", c.status), "text/html"
			if c.asJSON {
				text, kind = `{"error":true,"code":100500,"message":"Sending mail failed."}`, "application/json"
			}
			gateway.executed.Store(0)
			gateway.spoil(sends(c.status, kind, text))
			first := send()
			verdict := first.header.Get("Portico-Error")
			if first.status < 400 || gateway.executed.Load() != 1 {
				t.Fatalf("%s: status %d, carried out %d times: %s", name, first.status, gateway.executed.Load(), first.body)
			}
			if verdict != "" && verdict != "web-server" && !strings.Contains(verdict, "outcome=unknown") {
				t.Errorf("%s: %d %q although it was carried out", name, first.status, verdict)
			}
			second := send()
			gateway.spoil(nil)
			third := send()
			if gateway.executed.Load() != 1 || second.status < 400 || third.status < 400 {
				t.Errorf("%s: carried out %d times; statuses %d, %d, %d", name, gateway.executed.Load(), first.status, second.status, third.status)
			}
			if third.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: the repeated request got %d %v", name, third.status, third.header)
			}
		}
	}
}
