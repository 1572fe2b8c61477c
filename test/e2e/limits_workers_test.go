package e2e

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// fewWorkers runs the reference tracker, which takes some time for each request, behind an Apache with few workers. It gives two of
// these: one to ask straight, and one behind a Portico with its default settings.
func fewWorkers(t *testing.T, workers int, keepAlive string, delay time.Duration) (straight, behind string, through *facade) {
	t.Helper()
	_, tracker := startTracker(t, process.FreeAddress(t), "--fault", "kind=slow,delay="+delay.String())
	straight, behind = process.Apache(t, tracker, workers, keepAlive), process.Apache(t, tracker, workers, keepAlive)
	return straight, behind, startFacade(t, behind, "LOG_LEVEL=warn")
}

// workerRead is the nth of many reads, which no cache answers: an operation or a path that passes through.
func workerRead(n int) ask {
	return ask{path: []string{"/rest/bug/1/attachment", "/rest/bug/1/comment"}[n%2]}
}

func workerWrite(t *testing.T, n int) ask {
	path := "/rest/flag_type/1?Bugzilla_api_key=" + keys()["editor"]
	return ask{method: http.MethodPut, path: path, body: `{"description":"number ` + strconv.Itoa(n) + `"}`}
}

// workerBurst sends so many reads at once, and gives how many were refused and the longest time.
func workerBurst(t *testing.T, base string, reads int) (refused int, longest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range reads {
		all.Go(func() {
			status, took := (&client{base: base}).try(2*patience, workerRead(n))
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, took)
			if status != http.StatusOK {
				refused++
			}
		})
	}
	all.Wait()
	return refused, longest
}

// Portico keeps no connection that occupies a worker while another call waits for one.
func TestABurstAtATrackerWithFewWorkers(t *testing.T) {
	t.Parallel()
	base, _, p := fewWorkers(t, 10, "On", 100*time.Millisecond)
	_, alone := workerBurst(t, base, 60)
	for range 2 { // the second one finds kept connections
		longest := time.Hour
		for range 3 { // this machine may be busy with something else
			refused, last := workerBurst(t, p.base, 60)
			if refused > 0 {
				t.Errorf("%d of 60 reads were refused", refused)
			}
			if longest = min(longest, last); longest <= 2*alone+2*time.Second {
				break
			}
		}
		if longest > 2*alone+2*time.Second {
			t.Errorf("the last of 60 reads took %v through Portico and %v without", longest, alone)
		}
	}
}

// A call waits for its turn for as long as the tracker may take for a response.
func TestDuty_20_AQueueRatherThanARefusal(t *testing.T) {
	t.Parallel()
	_, _, p := fewWorkers(t, 4, "Off", 100*time.Millisecond)
	if refused, longest := workerBurst(t, p.base, 160); refused > 0 {
		t.Errorf("%d of 160 reads were refused; the last one took %v", refused, longest)
	}
}

// A write waits no longer beside readers than it does without Portico.
func TestAWriteBesideReadersAtATrackerWithFewWorkers(t *testing.T) {
	t.Parallel()
	base, _, p := fewWorkers(t, 10, "On", 100*time.Millisecond)
	slowest := func(at string) (longest time.Duration) {
		var readers sync.WaitGroup
		end := make(chan struct{})
		for n := range 14 {
			readers.Go(func() {
				for {
					select {
					case <-end:
						return
					default:
					}
					if status, _ := (&client{base: at}).try(2*patience, workerRead(n)); status != http.StatusOK {
						t.Errorf("a read: %d", status)
						return
					}
				}
			})
		}
		for n := range 4 {
			status, took := (&client{base: at}).try(2*patience, workerWrite(t, n))
			if longest = max(longest, took); status != http.StatusOK {
				t.Errorf("a write: %d", status)
			}
		}
		close(end)
		readers.Wait()
		return longest
	}
	alone := slowest(base)
	if longest := slowest(p.base); longest > 2*alone+10*time.Second {
		t.Errorf("a write took %v through Portico and %v without", longest, alone)
	}
}

// Idle connections delay neither a write through Portico nor, for long, other users of the tracker.
func TestIdleConnectionsOccupyNoWorkers(t *testing.T) {
	t.Parallel()
	_, tracker, p := fewWorkers(t, 4, "On", 100*time.Millisecond)
	for _, c := range []struct {
		name, at string
		request  ask
		most     time.Duration
	}{
		{"a write through Portico", p.base, workerWrite(t, 1), 1500 * time.Millisecond},
		{"a read of another user", tracker, workerRead(0), 2500 * time.Millisecond},
	} {
		least := time.Hour
		for n := 0; n < 5 && least > c.most; n++ { // a busy machine may be slow once
			workerBurst(t, p.base, 4)
			status, took := (&client{base: c.at}).try(2*patience, c.request)
			if least = min(least, took); status != http.StatusOK {
				t.Errorf("%s: %d", c.name, status)
			}
		}
		if least > c.most {
			t.Errorf("%s took %v at least", c.name, least)
		}
	}
}

// A slow tracker with workers for all gets a burst at once, although its first response takes a while.
func TestABurstAtASlowTracker(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t), "--fault", "kind=slow,delay=3s")
	p := startFacade(t, base, "LOG_LEVEL=warn")
	var longest, alone time.Duration
	for range 5 { // this machine may be busy with something else, for a part of the time
		var refused int
		_, alone = workerBurst(t, base, 200)
		if refused, longest = workerBurst(t, p.base, 200); refused > 0 {
			t.Errorf("%d of 200 reads were refused", refused)
		}
		if longest <= alone+5*time.Second { // without more slots it would be 9 s
			return
		}
	}
	t.Errorf("the last of 200 reads took %v through Portico and %v without", longest, alone)
}
