package e2e

import (
	"net/http"
	"testing"
	"time"

	"portico/test/process"
)

// soon demands that a request is answered at once: in a small part of what a timeout would take, on a busy machine too.
func (c *client) soon(t testing.TB, a ask) *reply {
	t.Helper()
	start := time.Now()
	got := c.do(t, a)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%s %s took %v", a.method, a.path, took)
	}
	return got
}

func TestMust_RedisKilled(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	server := process.Redis(t, address)
	_, base := startTracker(t, process.FreeAddress(t))
	f := startFacade(t, base, "CACHE_REDIS=redis://"+address, "CACHE_LOCAL_TTL=0s")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "dev"}
	process.Eventually(t, "a read is answered from Redis", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	server.Kill(t)
	for range 20 {
		f.soon(t, read).ok(t, 200)
	}
	f.put(t, "editor", "/rest/flag_type/1", `{"description":"without Redis"}`).ok(t, 200)
	is(t, f.soon(t, read).ok(t, 200).field(t, "1", "description"), `"without Redis"`)
	if ready := f.operators.do(t, ask{method: http.MethodGet, path: "/readyz"}); ready.status != http.StatusOK {
		t.Errorf("/readyz says %d without Redis", ready.status)
	}
	process.Redis(t, address)
	process.Eventually(t, "reads are answered from the new Redis", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	is(t, f.do(t, read).field(t, "1", "description"), `"without Redis"`)
}

func TestMust_TrackerKilled(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	tracker, base := startTracker(t, address)
	f := startFacade(t, base, "CACHE_TTL=1s", "CACHE_STALE_WHILE_REVALIDATE=0s", "CACHE_LOCAL_TTL=0s")
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "granter"}
	f.do(t, read).ok(t, 200)
	tracker.Kill(t)
	died := time.Now()
	attempt := func(op operation) {
		got := f.soon(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body})
		if got.status != 502 && got.status != 503 && got.status != 504 {
			t.Errorf("%s: status %d", op.name, got.status)
		}
		got.refused(t, got.status, 200000+got.status)
	}
	for _, op := range seven() {
		attempt(op)
	}
	f.soon(t, ask{method: http.MethodGet, path: "/rest/bug/1"})
	if alive := f.operators.do(t, ask{method: http.MethodGet, path: "/livez"}); alive.status != http.StatusOK {
		t.Errorf("/livez says %d without the tracker", alive.status)
	}
	for time.Since(died) < 1300*time.Millisecond { // past the time to live, so that only a stale answer is left
		is(t, f.soon(t, read).ok(t, 200).field(t, "granted", "values"), `["X","?","+","-"]`)
		time.Sleep(50 * time.Millisecond)
	}
	if got := f.soon(t, read); got.cacheStatus() != "hit" || got.header.Get("Age") == "" {
		t.Errorf("a stale answer says %q and Age %q", got.header.Get("Cache-Status"), got.header.Get("Age"))
	}
	for _, op := range seven() {
		attempt(op)
	}
	startTracker(t, address)
	process.Eventually(t, "the tracker is used again", func() bool {
		return f.do(t, ask{method: http.MethodGet, path: "/rest/bug/5/attachment"}).status == 200
	})
	f.post(t, "dev", "/rest/bug/7/attachment", upload(`"content_type":"text/plain"`)).ok(t, 201)
}
