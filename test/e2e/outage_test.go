package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// isRefused reports whether the open breaker refused a request.
func (r *reply) isRefused() bool {
	return strings.HasPrefix(r.header.Get("Portico-Error"), "breaker-open") && !strings.Contains(r.header.Get("Portico-Error"), "unknown")
}

// TestOutagesAreRecognised: a tracker that fails every request is recognised although only one target is asked. Then reads and
// writes are refused at once, and are let through again soon after it has recovered.
func TestOutagesAreRecognised(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	for kind := range failures {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startSickTracker(t, base)
			f := startFacade(t, s.base, "LOG_LEVEL=error", "TRACKERS_MAIN_TIMEOUT=2s", "TRACKERS_MAIN_DIALECT=bugzilla-5")
			read, write := others()[0], others()[1]
			f.do(t, read).ok(t, 200)
			s.fail(func(*http.Request) string { return kind })
			began := time.Now()
			process.Eventually(t, "the breaker opens", func() bool { return f.do(t, read).isRefused() })
			took := time.Since(began)
			if took > 15*time.Second { // the timeout and two probes of a second, on a busy machine
				t.Errorf("it took %v to recognise the outage", took)
			}
			process.Eventually(t, "writes are refused, too", func() bool { return f.do(t, write).isRefused() })
			for range 20 {
				if got := f.soon(t, write); !got.isRefused() {
					t.Errorf("a write during the outage: status %d, %q", got.status, got.header.Get("Portico-Error"))
				}
				f.soon(t, read)
			}
			s.heal()
			began = time.Now()
			process.Eventually(t, "reads work again", func() bool { return f.do(t, read).status == 200 })
			process.Eventually(t, "writes work again", func() bool { return f.do(t, write).status == 200 })
			t.Logf("recognised after %v, recovered after %v", took, time.Since(began))
			if recovered := time.Since(began); recovered > 15*time.Second { // 500 ms on a quiet machine
				t.Errorf("recovery took %v", recovered)
			}
		})
	}
}

// TestWritesAloneHang: a tracker that hangs on writes is recognised by them, and reads go on. When it recovers, writes
// are let through again.
func TestWritesAloneHang(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t))
	s := startSickTracker(t, base)
	f := startFacade(t, s.base, "LOG_LEVEL=error", "TRACKERS_MAIN_TIMEOUT=1s")
	write := func(i int) ask {
		return ask{method: "POST", path: "/rest/bug/" + strconv.Itoa(i%9+1) + "/comment", user: "dev", body: `{"comment":"a comment"}`}
	}
	f.do(t, others()[0]).ok(t, 200)
	s.fail(func(r *http.Request) string {
		if r.Method == http.MethodGet {
			return ""
		}
		return "hang"
	})
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() { f.try(patience, write(i)) })
	}
	all.Wait()
	process.Eventually(t, "the breaker of writes opens", func() bool { return f.do(t, write(7)).isRefused() })
	for range 20 {
		f.soon(t, others()[0]).ok(t, 200)
	}
	s.heal()
	process.Eventually(t, "writes work again", func() bool { return f.do(t, write(7)).status == 201 })
}
