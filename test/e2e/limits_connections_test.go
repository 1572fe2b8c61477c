package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// startConfined runs `portico serve` as a process that may open only so many files.
func startConfined(t *testing.T, descriptors int, tracker string, env ...string) (p *process.Process, clients, operators *client) {
	t.Helper()
	f := process.ServeVia(t, []string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, descriptors), "sh"}, env, "serve", "--tracker", tracker)
	all := keys()
	return f.Process, &client{base: f.Clients, keys: all}, &client{base: f.Operators, keys: all}
}

// openHalf opens connections and sends the beginning of a request on each. They stay open until the test ends.
func openHalf(t *testing.T, base string, count int) {
	t.Helper()
	for range count {
		connection, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), 10*time.Second)
		must(t, err)
		t.Cleanup(func() { connection.Close() })
		_, _ = io.WriteString(connection, "GET /rest/version HTTP/1.1\r\nHost: portico.example\r\n") // Portico may close it at once
	}
}

// within demands that a request gets a status in time.
func (c *client) within(t *testing.T, limit time.Duration, status int, a ask) {
	t.Helper()
	if got, took := c.try(limit, a); got != status {
		t.Errorf("%s %s: status %d after %v, want %d", a.method, a.path, got, took, status)
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
	const limit = 30 * time.Second // less than timeouts.header
	for range 3 {
		operators.within(t, limit, 200, ask{path: "/livez"})
		clients.within(t, limit, 200, ask{path: "/rest/flag_type/TestProduct"})
		clients.within(t, limit, 201, ask{method: "POST", path: "/rest/bug/1/attachment", user: "admin", body: upload(`"content_type":"text/plain"`)})
		clients.within(t, limit, 200, ask{path: "/rest/bug/attachment/4"})
	}
	var together sync.WaitGroup
	for range 10 {
		together.Go(func() { clients.within(t, limit, 200, ask{path: "/rest/bug/1/attachment", user: "admin"}) })
	}
	together.Wait()
	operators.within(t, limit, 200, ask{path: "/livez"})
}

// A client beyond limits.connections takes the place of the connection that was used least recently, also where Portico has responded on
// the other one from memory. A connection may be known to be without a request only after its client has the response, so that one of
// several rounds is enough.
func TestConnectionInUseKeepsItsPlace(t *testing.T) {
	t.Parallel()
	_, tracker := startTracker(t, process.FreeAddress(t))
	p := startFacade(t, tracker, "LIMITS_CONNECTIONS=2")
	for range 5 {
		dials := 0
		kept := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
		get := func(transport *http.Transport, path string) {
			t.Helper()
			response, err := (&http.Client{Transport: transport}).Get(p.base + path)
			must(t, err)
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		get(kept, "/rest/flag_type/TestProduct")
		get(kept, "/rest/flag_type/TestProduct")
		get(&http.Transport{}, "/rest/version")
		get(kept, "/rest/flag_type/TestProduct")
		get(&http.Transport{}, "/rest/version")
		if get(kept, "/rest/flag_type/TestProduct"); dials == 1 {
			return
		}
	}
	t.Error("the connection that was used last is closed")
}

// A client beyond limits.connections takes the place of a connection that has no request. Where all have one it waits; it is
// not refused.
func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	t.Parallel()
	tracker := holdingTracker(t)
	p := startFacade(t, tracker.base, "LIMITS_CONNECTIONS=2", "TRACKERS_MAIN_DIALECT=bugzilla-5")
	get := func(path string) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.within(t, 30*time.Second, 200, ask{path: path})
		}()
		return done
	}
	// A kept connection without a request, and one that is silent, give way.
	kept := &http.Client{Transport: &http.Transport{}}
	response, err := kept.Get(p.base + "/kept")
	must(t, err)
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	openHalf(t, p.base, 1)
	first, second := get("/held"), get("/held")
	<-tracker.arrived
	<-tracker.arrived
	third := get("/free")
	select {
	case <-third:
		t.Error("a third connection was served beside two that are in use")
	case <-time.After(300 * time.Millisecond):
	}
	close(tracker.letGo)
	for _, done := range []chan struct{}{first, second, third} {
		<-done
	}
}
