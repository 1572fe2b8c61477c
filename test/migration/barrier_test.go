package migration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/switchover"
)

// configurationShared is that of each of several processes.
const configurationShared = `trackers:
  before: {url: "%s/", dialect: bugzilla-5}
  after: {url: "%s/", dialect: bugzilla-5}
primary: before
candidate: after
state: "%s"
cache: {scope: off}
canary: {sample: 0}
switchover:
  rules:
    - {name: rest, reads: new, writes: old}
log: {level: error}
`

// writers are two trackers that note when each write begins and ends.
type writers struct {
	mu sync.Mutex
	// under are the writes that each tracker carries out now, last is the tracker of the last one.
	under [2]int
	last  int
	// switches counts how often a write went to another tracker than the one before, overlaps how often while that one was under way.
	switches, overlaps, all int
}

// note serves a tracker.
func (w *writers) note(side int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			next.ServeHTTP(out, r)
			return
		}
		w.mu.Lock()
		w.under[side]++
		w.all++
		if w.last != side {
			w.last = side
			w.switches++
		}
		if w.under[1-side] > 0 {
			w.overlaps++
		}
		w.mu.Unlock()
		time.Sleep(20 * time.Millisecond) // as a real tracker takes
		next.ServeHTTP(out, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.under[side]--
	})
}

// movers are processes that go by the same rules.
type movers []*process.Facade

// move has one of them send all writes to the other tracker. It reports whether that succeeded.
func (m movers) move(t *testing.T, by int, reason string) bool {
	got, err := request(t.Context(), http.DefaultClient, "GET", m[by].Operators+"/switchover/status.json", nil)
	var status switchover.Status
	if err != nil || json.Unmarshal(got.text, &status) != nil || status.Moving != nil {
		return false
	}
	table := switchover.Table{Rules: []switchover.Rule{{Name: "rest", Reads: switchover.PhaseNew, Writes: switchover.PhaseNew}}}
	if status.Table.Rules[0].Writes.New() {
		table.Rules[0].Writes = switchover.PhaseOld
	}
	got, err = changeRules(t, m[by].Operators, status.Version, reason, table)
	return err == nil && got.status == http.StatusOK
}

// write changes one attachment through one of them again and again.
func (m movers) write(t *testing.T, by int, over <-chan struct{}, written *atomic.Int64) {
	client := &http.Client{Timeout: time.Minute}
	for n := 0; ; n++ {
		select {
		case <-over:
			return
		default:
		}
		body := fmt.Sprintf(`{"ids": [1], "summary": "%d-%d"}`, by, n)
		got, err := request(t.Context(), client, http.MethodPut, m[by].Clients+"/rest/bug/attachment/1", body, keyHeader, tracker.Keys(tracker.SeedFixture)["dev@example.com"])
		if err != nil { // it is killed
			time.Sleep(20 * time.Millisecond)
			continue
		}
		switch {
		case got.status == http.StatusOK:
			written.Add(1)
		case strings.HasPrefix(got.header.Get("Portico-Error"), "tracker-unreachable"):
			time.Sleep(20 * time.Millisecond) // its process was stopped for longer than a connection may take
		case got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "":
			t.Errorf("a write has the status %d, %s", got.status, got.header.Get("Portico-Error"))
			return
		default:
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// TestOneTrackerGetsTheWrites moves writes there and back while processes are killed and stopped. At no time both trackers get writes, and writes
// change the tracker only with a move that was made.
func TestOneTrackerGetsTheWrites(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	stop, kill := syscall.SIGSTOP, syscall.SIGKILL
	for name, c := range map[string]struct {
		processes int
		// signals are sent while process 0 moves writes, to the process with that number.
		signals []syscall.Signal
		to      []int
	}{
		"PostgreSQL": {2, []syscall.Signal{stop, kill, stop}, []int{1, 0, 0}},
		"SQLite":     {1, []syscall.Signal{kill, stop}, []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random, w, dir := rand.New(rand.NewPCG(seed, 0)), &writers{}, t.TempDir()
			store := "sqlite:" + filepath.Join(dir, "state.db")
			if c.processes > 1 {
				store = process.Postgres(t)
			}
			var bases []any
			for side := range 2 {
				server := tracker.New(tracker.Options{Seed: tracker.SeedFixture})
				bases = append(bases, listen(t, server, w.note(side, server)))
			}
			file := filepath.Join(dir, "portico.yaml")
			must(t, os.WriteFile(file, fmt.Appendf(nil, configurationShared, append(bases, store)...), 0o600))
			var m movers
			var written atomic.Int64
			over := make(chan struct{})
			var load sync.WaitGroup
			for range c.processes {
				m = append(m, process.Serve(t, nil, "serve", "--config", file))
			}
			for i := range m {
				for range 2 {
					load.Go(func() { m.write(t, i, over, &written) })
				}
			}
			made := 0
			for round, signal := range c.signals {
				moving := make(chan bool, 1)
				go func() { moving <- m.move(t, 0, fmt.Sprint("round ", round)) }()
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				victim := m[c.to[round]]
				if signal == kill {
					victim.Kill(t)
					time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
					victim.Start(t)
				} else {
					victim.Signal(t, stop)
					time.Sleep(time.Duration(7000+random.IntN(1000)) * time.Millisecond) // longer than a heartbeat lasts
					victim.Signal(t, syscall.SIGCONT)
				}
				moved := <-moving
				if c.to[round] == 1 && !moved {
					t.Errorf("round %d: a process that is away keeps writes from being moved", round)
				}
				// Whatever became of it, writes go on, and can be moved.
				process.Eventually(t, "a move after it", func() bool { return m.move(t, 0, fmt.Sprint("after round ", round)) })
				made += 2 // one of which may not have been made
				before := written.Load()
				process.Eventually(t, "writes after it", func() bool { return written.Load() > before+5 })
			}
			close(over)
			load.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.overlaps > 0 || w.switches > made {
				t.Errorf("of %d writes %d overlap, and they change the tracker %d times in %d moves", w.all, w.overlaps, w.switches, made)
			}
			t.Logf("%d writes, %d acknowledged, %d changes of the tracker", w.all, written.Load(), w.switches)
		})
	}
}
