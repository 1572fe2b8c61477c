package faults

import (
	"os"
	"strings"
	"testing"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// startTracker runs `portico tracker`.
func startTracker(t testing.TB) (p *process.Process, address string) {
	t.Helper()
	address = process.FreeAddress(t)
	p, _ = process.Tracker(t, address, "--seed", "fixture", "--max-attachment", "20000")
	return p, address
}

// startPortico runs `portico serve` before a tracker, with settings such as "TIMEOUTS_CONNECT=1s".
func startPortico(t testing.TB, tracker, redis string, settings ...string) (p *process.Process, address string) {
	t.Helper()
	env := append([]string{
		"CACHE_REDIS=" + redis, "TRACKERS_MAIN_TIMEOUT=" + trackerTimeout.String(), "LIMITS_QUEUE_WAIT=" + queueWait.String(), "TIMEOUTS_CONNECT=1s",
	}, settings...)
	f := process.Serve(t, env, "serve", "--tracker", "http://"+tracker)
	return f.Process, strings.TrimPrefix(f.Clients, "http://")
}
