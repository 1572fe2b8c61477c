package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// startConfined runs `portico serve` as a process that may open only so many files.
func startConfined(t *testing.T, descriptors int, tracker string, env ...string) (p *process.Process, clients, operators *client) {
	t.Helper()
	at, admin := process.FreeAddress(t), process.FreeAddress(t)
	spec := process.Spec{
		Program: "/bin/sh",
		Args: []string{
			"-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, descriptors), "sh",
			process.Portico(t), "serve", "--tracker", tracker, "--listen", at, "--admin-listen", admin,
		},
		Ready: func(*process.Process) bool { return process.Listens(at) && process.Listens(admin) },
	}
	for _, one := range env {
		spec.Env = append(spec.Env, "PORTICO_"+one)
	}
	all := keys(t)
	return process.Launch(t, spec), &client{base: "http://" + at, keys: all}, &client{base: "http://" + admin, keys: all}
}

// openHalf opens connections and sends the beginning of a request on each. They stay open until the test ends.
func openHalf(t *testing.T, base string, count int) {
	t.Helper()
	for range count {
		connection, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		_, _ = io.WriteString(connection, "GET /rest/version HTTP/1.1\r\nHost: portico.example\r\n") // Portico may close it at once
	}
}

// within demands that a request is answered with a status in time.
func within(t *testing.T, limit time.Duration, method, address string, body io.Reader, header http.Header, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := (&http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Errorf("%s %s: %v", method, address, err)
		return
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != status {
		t.Errorf("%s %s: status %d, want %d: %v: %.300s", method, address, response.StatusCode, status, err, text)
	}
}

// Connections that send half a request keep neither health checks nor clients from being served, even where they are more than
// the descriptors of the process, and although none of them is over in time: timeouts.header is a minute here.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	_, tracker := startTracker(t, process.FreeAddress(t))
	_, clients, operators := startConfined(t, 64, tracker, "TIMEOUTS_HEADER=1m")
	openHalf(t, clients.base, 200)
	openHalf(t, operators.base, 200)
	const limit = 8 * time.Second
	header := http.Header{"X-Bugzilla-Api-Key": {clients.keys["admin"]}, "Content-Type": {"application/json"}}
	for range 3 {
		within(t, limit, "GET", operators.base+"/livez", nil, nil, 200)
		within(t, limit, "GET", clients.base+"/rest/flag_type/TestProduct", nil, nil, 200)
		within(t, limit, "POST", clients.base+"/rest/bug/1/attachment", strings.NewReader(upload(`"content_type":"text/plain"`)), header, 201)
		within(t, limit, "GET", clients.base+"/rest/bug/attachment/4", nil, nil, 200)
	}
	var together sync.WaitGroup
	for range 10 {
		together.Go(func() { within(t, limit, "GET", clients.base+"/rest/bug/1/attachment", nil, header, 200) })
	}
	together.Wait()
	within(t, limit, "GET", operators.base+"/livez", nil, nil, 200)
}

// A client beyond limits.connections takes the place of a connection that has no request. Where all have one it waits; it is
// not refused.
func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 10), make(chan struct{})
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			asked <- struct{}{}
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer tracker.Close()
	p := startFacade(t, tracker.URL, "LIMITS_CONNECTIONS=2", "TRACKERS_MAIN_DIALECT=bugzilla-5")
	get := func(path string) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			within(t, 30*time.Second, "GET", p.base+path, nil, nil, 200)
		}()
		return done
	}
	// A kept connection without a request, and one that is silent, give way.
	kept := &http.Client{Transport: &http.Transport{}}
	response, err := kept.Get(p.base + "/kept")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	openHalf(t, p.base, 1)
	first, second := get("/held"), get("/held")
	<-asked
	<-asked
	third := get("/free")
	select {
	case <-third:
		t.Error("a third connection was served beside two that are in use")
	case <-time.After(300 * time.Millisecond):
	}
	close(release)
	for _, done := range []chan struct{}{first, second, third} {
		<-done
	}
}
