package e2e

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"portico/test/process"
	"portico/test/tracker"
)

// TestMain lets more tests run at a time than there are processors: they wait for programs more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("4") // a number is accepted
	}
	os.Exit(process.Main(m))
}

// startTracker runs `portico tracker` with the fixture and gives where it is.
func startTracker(t testing.TB, address string, args ...string) (p *process.Process, base string) {
	t.Helper()
	return process.Tracker(t, address, append([]string{"--seed", "fixture"}, args...)...)
}

// facade is a running `portico serve`.
type facade struct {
	*process.Process
	*client
	// operators is the base of its second listener.
	operators *client
}

// startFacade runs `portico serve` before a tracker. env are settings such as "CACHE_SCOPE=off".
func startFacade(t testing.TB, tracker string, env ...string) *facade {
	t.Helper()
	p := process.Serve(t, append([]string{"LOG_LEVEL=debug"}, env...), "serve", "--tracker", tracker)
	all := keys()
	return &facade{
		Process: p.Process, client: &client{base: p.Clients, keys: all}, operators: &client{base: p.Operators, keys: all},
	}
}

func redisClient(t testing.TB, address string) *redis.Client {
	t.Helper()
	reader := redis.NewClient(&redis.Options{Addr: address, DialerRetries: 1, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { reader.Close() })
	return reader
}

// cacheStatus gives what an answer says of the cache: hit, or why the tracker was asked.
func (r *reply) cacheStatus() string {
	for part := range strings.SplitSeq(r.header.Get("Cache-Status"), ";") {
		if part = strings.TrimSpace(part); part == "hit" || strings.HasPrefix(part, "fwd=") {
			return part
		}
	}
	return ""
}

// keys are those of the fixture's users.
func keys() map[string]string { return tracker.FixtureKeys() }

var must = process.Must
