package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
)

var (
	requests = flag.Int64("requests", 0, "the number of requests over all kinds of fault; 0 is the short run")
	seeded   = flag.Uint64("seed", 0, "the seed of the load; 0 takes one at random")
	only     = flag.String("kind", "", "only the kinds whose name contains this")
)

// shortRun is how long the short run begins new kinds, in an order that the seed decides. On a machine that has nothing
// else to do it gets through all of them.
const shortRun = 20 * time.Second

// result is a line of the table.
type result struct {
	kind string
	book *book
}

// TestFaults is the fault suite: every kind of fault under load, and no word to a client that is not true.
func TestFaults(t *testing.T) {
	seed := *seeded
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	all := kinds()
	each, rounds, parallel, budget := int64(50), 1, 8, shortRun
	if *requests > 0 {
		each, rounds, parallel = *requests/int64(len(all))*12/10+1, 10, 3
		budget = time.Hour
	}
	var mu sync.Mutex
	var results []result
	process.Portico(t)
	start := time.Now()
	gate := make(chan struct{}, parallel)
	t.Run("kinds", func(t *testing.T) {
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
			k := all[i]
			if !strings.Contains(k.name, *only) {
				continue
			}
			t.Run(strings.ReplaceAll(k.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				gate <- struct{}{}
				t.Cleanup(func() { <-gate })
				if time.Since(start) > budget {
					t.Skip("no time left: this kind is for another seed")
				}
				n := each
				if k.slow {
					n /= 3
				}
				b := openScene(t, k, seed+uint64(i)).try(n, rounds, seed+uint64(i))
				if len(b.wrong) > 0 {
					t.Errorf("%d violations:\n%s", len(b.wrong), b.summary())
				}
				mu.Lock()
				defer mu.Unlock()
				results = append(results, result{k.name, b})
			})
		}
	})
	t.Logf("\n%s%v, seed %d", table(all, results), time.Since(start).Round(time.Second), seed)
}

// table shows what became of all requests, in the order of the kinds.
func table(all []kind, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %9s %9s %8s %8s %7s %9s %10s\n", "kind of fault", "requests", "ok", "refused", "unknown", "lost", "slowest", "violations")
	var sum [6]int
	for _, k := range all {
		for _, r := range results {
			if r.kind != k.name {
				continue
			}
			c := r.book.count
			row := [6]int{c[ok] + c[refused] + c[unknown] + c[lost], c[ok], c[refused], c[unknown], c[lost], len(r.book.wrong)}
			for i, n := range row {
				sum[i] += n
			}
			fmt.Fprintf(&b, "%-34s %9d %9d %8d %8d %7d %9s %10d\n", k.name, row[0], row[1], row[2], row[3], row[4], r.book.slowest.Round(time.Millisecond), row[5])
		}
	}
	fmt.Fprintf(&b, "%-34s %9d %9d %8d %8d %7d %9s %10d\n", fmt.Sprintf("%d kinds", len(results)), sum[0], sum[1], sum[2], sum[3], sum[4], "", sum[5])
	return b.String()
}

// kind is a way in which something fails while clients are at work.
type kind struct {
	name string
	// faults are those of the reference tracker.
	faults []string
	// accept and meet are those of the wire, which percent of connections or requests meet.
	accept, meet func(*crossing) bool
	percent      int
	// disturb acts on processes during the load, once for each round.
	disturb func(*scene)
	// redis puts a relay before Redis.
	redis bool
	// lost says that clients may lose their connections to Portico.
	lost bool
	// late says that writes of unknown outcome may take effect later.
	late bool
	// amnesia says that the tracker forgets what it knew; only the journal is compared.
	amnesia bool
	// slow kinds get a part of the usual number of requests.
	slow bool
}

// kinds lists all.
func kinds() []kind {
	all := []kind{{name: "none"}}
	all = append(all, trackerKinds()...)
	all = append(all, wireKinds()...)
	return append(all, processKinds()...)
}

// trackerKinds are the faults that the reference tracker makes itself.
func trackerKinds() []kind {
	var all []kind
	for _, fault := range []string{
		"error500", "html200", "empty200", "reset-before", "100500-with-201", "bad-status", "reset-after-headers", "reset-mid-body", "truncate-json",
		"wrong-length", "gzip-lie", "wrong-content-type", "endless-headers", "close-after-commit",
	} {
		all = append(all, kind{name: "tracker " + fault, faults: []string{"kind=" + fault + ",percent=20"}})
	}
	for _, fault := range []string{"hang-before,percent=5", "hang-after-headers,percent=5", "drip,percent=10,delay=5ms", "slow,percent=10,delay=600ms", "slow,percent=8,delay=1500ms"} {
		name, rest, _ := strings.Cut(fault, ",")
		if _, delay, found := strings.Cut(rest, "delay="); found {
			name += " " + delay
		}
		all = append(all, kind{name: "tracker " + name, faults: []string{"kind=" + fault}, slow: true, late: true})
	}
	return append(all, kind{name: "tracker many at once", late: true, slow: true, faults: []string{
		"kind=error500,percent=5", "kind=close-after-commit,percent=5", "kind=truncate-json,percent=5", "kind=reset-mid-body,percent=5",
		"kind=reset-before,percent=5", "kind=slow,percent=5,delay=300ms", "kind=html200,percent=5", "kind=hang-before,percent=1",
	}})
}

// wireKinds are the faults of the connection to the tracker.
func wireKinds() []kind {
	html := "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"
	return []kind{
		{name: "wire accept and close", accept: acceptAndClose, percent: 30},
		{name: "wire accept and reset", accept: acceptAndReset, percent: 30},
		{name: "wire refuses", percent: 1, meet: (*crossing).pass, disturb: func(s *scene) {
			s.wire.shut()
			s.wire.cut()
			time.Sleep(300 * time.Millisecond)
			s.must(s.wire.open())
			time.Sleep(700 * time.Millisecond)
		}, late: true},
		{name: "wire blackhole", meet: blackhole, percent: 4, slow: true},
		{name: "wire keeps the answer", meet: blackholeAnswer, percent: 4, slow: true},
		{name: "wire stalls in the answer", meet: cutAnswer((*crossing).hold), percent: 4, slow: true},
		{name: "wire reset in the request", meet: toTracker(resetUp), percent: 20, late: true},
		{name: "wire reset, request unread", meet: resetUnread, percent: 20},
		{name: "wire reset in the answer", meet: cutAnswer(func(x *crossing) { reset(x.conn) }), percent: 20},
		{name: "wire FIN in the answer", meet: cutAnswer((*crossing).finish), percent: 20},
		{name: "wire FIN to the tracker", meet: toTracker(finUp), percent: 30},
		{name: "wire half the request, FIN", meet: toTracker(halfRequest), percent: 20},
		{name: "wire byte by byte", meet: inPieces(1, 400, 100*time.Microsecond), percent: 30, slow: true, late: true},
		{name: "wire narrow", meet: inPieces(512, 60, 10*time.Millisecond), percent: 20, slow: true, late: true},
		{name: "wire late", meet: late, percent: 10, slow: true, late: true},
		{name: "wire garbage", meet: spoken(false, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 no HTTP\r\n\r\n"), percent: 20},
		{name: "wire garbage, carried out", meet: spoken(true, "SSH-2.0-OpenSSH_9.6\r\n"), percent: 20},
		{name: "wire gateway page, carried out", meet: spoken(true, html), percent: 20},
		{name: "wire two answers", meet: twoAnswers, percent: 40},
		{name: "wire early answer", meet: earlyAnswer, percent: 20},
		{name: "wire drops kept connections", meet: keptDrop(false), percent: 40},
		{name: "wire drops them, carried out", meet: keptDrop(true), percent: 40},
		{name: "wire 408 when idle", meet: idle408, percent: 40},
		{name: "wire many interim answers", meet: reshaped(interim), percent: 30},
		{name: "wire no length, cut", meet: reshaped(unframed), percent: 20},
		{name: "wire bad chunk", meet: reshaped(chunked("\r\nzz\r\n")), percent: 20},
		{name: "wire no last chunk", meet: reshaped(chunked("\r\n")), percent: 20},
		{name: "wire status 204", meet: reshaped(func(string, []byte) []byte { return []byte("HTTP/1.1 204 No Content\r\n\r\n") }), percent: 20},
		{name: "wire status 304", meet: reshaped(func(string, []byte) []byte { return []byte("HTTP/1.1 304 Not Modified\r\n\r\n") }), percent: 20},
		{name: "wire redirect", meet: reshaped(withStatus("302 Found\r\nLocation: /elsewhere")), percent: 20},
		{name: "wire good body, status 503", meet: reshaped(withStatus("503 Service Unavailable")), percent: 20},
		{name: "wire 504 in the tracker's shape", percent: 20, meet: reshaped(func(string, []byte) []byte {
			return withLength("504 Gateway Timeout", "", []byte(`{"error":true,"code":504,"message":"the gateway gave up"}`))
		})},
		{name: "wire an array", meet: reshaped(withBody(`[{"id":1,"ids":[1]}]`)), percent: 20},
		{name: "wire an empty object", meet: reshaped(withBody(`{}`)), percent: 20},
	}
}

// processKinds are those of whole processes.
func processKinds() []kind {
	return []kind{
		{name: "redis killed, back empty", disturb: func(s *scene) {
			s.redis.Kill(s.t)
			time.Sleep(200 * time.Millisecond)
			s.must(s.redis.Begin())
			time.Sleep(600 * time.Millisecond)
		}},
		{name: "redis stopped", disturb: func(s *scene) {
			s.redis.Signal(s.t, syscall.SIGSTOP)
			time.Sleep(400 * time.Millisecond)
			s.redis.Signal(s.t, syscall.SIGCONT)
			time.Sleep(500 * time.Millisecond)
		}},
		{name: "redis slow", redis: true, disturb: func(s *scene) {
			s.relay.Delay.Store(int64(150 * time.Millisecond))
			time.Sleep(500 * time.Millisecond)
			s.relay.Delay.Store(int64(20 * time.Millisecond))
			time.Sleep(500 * time.Millisecond)
			s.relay.Delay.Store(0)
			time.Sleep(300 * time.Millisecond)
		}},
		{name: "redis connections reset", redis: true, disturb: func(s *scene) {
			s.relay.Cut()
			time.Sleep(50 * time.Millisecond)
		}},
		{name: "redis answers kept", redis: true, disturb: func(s *scene) {
			s.relay.Silent.Store(true)
			time.Sleep(400 * time.Millisecond)
			s.relay.Silent.Store(false)
			s.relay.Cut()
			time.Sleep(500 * time.Millisecond)
		}},
		{name: "redis emptied", disturb: func(s *scene) {
			s.must(s.emptyRedis())
			time.Sleep(30 * time.Millisecond)
		}},
		{name: "portico killed", lost: true, late: true, disturb: func(s *scene) {
			time.Sleep(700 * time.Millisecond)
			s.portico.Kill(s.t)
			s.must(s.portico.Begin())
		}},
		{name: "portico told to end", lost: true, disturb: func(s *scene) {
			time.Sleep(700 * time.Millisecond)
			s.portico.Stop(s.t)
			s.must(s.portico.Begin())
		}},
		{name: "tracker killed", percent: 1, meet: (*crossing).pass, amnesia: true, disturb: func(s *scene) {
			time.Sleep(700 * time.Millisecond)
			s.wire.shut()
			s.wire.cut()
			s.forgotten = s.journal() // which ends with the process; nothing reaches it any more
			s.tracker.Kill(s.t)
			s.must(s.tracker.Begin())
			s.must(s.wire.open())
		}},
		{name: "tracker stopped", late: true, disturb: func(s *scene) {
			time.Sleep(500 * time.Millisecond)
			s.tracker.Signal(s.t, syscall.SIGSTOP)
			time.Sleep(1500 * time.Millisecond)
			s.tracker.Signal(s.t, syscall.SIGCONT)
		}},
		{name: "clients hang up", faults: []string{"kind=slow,percent=20,delay=50ms"}, late: true, disturb: func(s *scene) { s.hangUp(20) }},
	}
}
