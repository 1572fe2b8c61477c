package faults

import (
	"sync"
	"testing"
)

// TestHungUpClients: a hundred clients that do not wait for their answers count as no failure of the tracker.
func TestHungUpClients(t *testing.T) {
	t.Parallel()
	s := openScene(t, kind{name: "aborts"}, 1)
	// A machine that is busy with other things must not look like a tracker that is.
	s.portico, s.front = startPortico(t, s.direct, "redis://"+s.redisAt, "TRACKERS_MAIN_TIMEOUT=10s")
	s.setFaults("kind=slow,delay=300ms")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { s.hangUp(10) })
	}
	all.Wait()
	c := client{address: s.front, keys: s.keys}
	defer c.close()
	for _, a := range []ask{
		{method: "GET", path: "/rest/flag_type/TestProduct", user: "dev"},
		{method: "GET", path: "/rest/bug/7/attachment", user: "dev"},
		{method: "GET", path: "/rest/bug/attachment/1", user: "dev"},
		{method: "POST", path: "/rest/flag_type", user: "editor", body: `{"name":"after","description":"d"}`},
		{method: "PUT", path: "/rest/flag_type/1", user: "editor", body: `{"description":"d"}`},
		{method: "POST", path: "/rest/bug/7/attachment", user: "dev", body: `{"ids":[7],"data":"YQ==","file_name":"f","summary":"s","content_type":"text/plain"}`},
		{method: "PUT", path: "/rest/bug/attachment/1", user: "dev", body: `{"summary":"s"}`},
		{method: "GET", path: "/rest/bug/7/comment", user: "dev"},
	} {
		if got := c.do(a); got.status != 200 && got.status != 201 {
			t.Errorf("%s %s after aborted requests: %d %s", a.method, a.path, got.status, got.body)
		}
	}
}
