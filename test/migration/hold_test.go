package migration

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/switchover"
)

var (
	seeds   = flag.Int("seeds", 0, "how many whole moves the proof makes with PostgreSQL, each with another seed")
	embeds  = flag.Int("sqlite", 0, "how many whole moves the proof makes with SQLite")
	dump    = flag.String("dump", "", "write the journal of a move that fails to this `FILE`")
	moments = flag.Int("moments", 1, "at how many moments after each part of a move both trackers are compared, at which going back is called safe")
	first   = flag.Uint64("seed", 0, "the first seed; 0 means any")
)

// TestAMoveLosesNothing moves a product to the new tracker, half-way back and again to the new one, while clients write and everything is killed.
// Unless flags ask for whole moves, it makes one brief move with each kind of store, both at a time.
func TestAMoveLosesNothing(t *testing.T) {
	seed, brief, counts := *first, *seeds+*embeds == 0, []int{*seeds, *embeds}
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if brief {
		t.Parallel()
		counts = []int{1, 1}
	}
	var safe atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d moments at which going back was called safe, and both trackers were the same", safe.Load())
	})
	for i, kind := range []string{"PostgreSQL", "SQLite"} {
		for n := range uint64(counts[i]) {
			t.Run(fmt.Sprint(kind, "-", seed+n), func(t *testing.T) {
				if brief {
					t.Parallel()
				}
				safe.Add(moveThere(t, seed+n, i == 0, brief))
			})
		}
	}
}

// moveThere makes one move. It returns at how many moments going back was safe.
func moveThere(t *testing.T, seed uint64, postgres, brief bool) (safe int64) {
	t.Helper()
	w := startWorld(t, seed, postgres)
	w.brief = brief
	stop := w.work(t, seed)
	t.Cleanup(func() {
		if t.Failed() && *dump != "" {
			_, out, _ := process.Run(t, "migrate", "journal", "list", "--all", "--output", "json", "--config", w.file)
			_ = os.WriteFile(*dump, []byte(out), 0o600)
			_ = os.WriteFile(*dump+".faults", []byte(strings.Join(w.book.faults, "\n")), 0o600)
			for _, d := range w.trackers {
				text, _ := os.ReadFile(filepath.Join(d.dir, servedFile))
				_ = os.WriteFile(*dump+"."+d.name, text, 0o600)
			}
		}
	})
	there := switchover.PhasePair{Reads: switchover.PhaseNew, Writes: switchover.PhaseNew}
	if brief {
		there = switchover.PhasePair{Reads: switchover.PhaseNewCompare, Writes: switchover.PhaseNewCompare}
	}
	for _, part := range []struct {
		to   switchover.PhasePair
		back bool
	}{
		{there, false}, {switchover.PhasePair{Reads: switchover.PhaseNewCompare, Writes: switchover.PhaseOldCompare}, true}, {there, false},
	} {
		w.move(t, part.to, part.back)
		for range *moments {
			if part.to.Writes.New() { // without writes there, going back is always safe
				w.pause(2000)
				w.goingBack(t)
			}
		}
	}
	w.await(t, func() string { return "each process is killed" }, w.allKilled.Load)
	stop()
	w.judge(t)
	return int64(w.book.counts[safeMoment])
}

// work starts the clients, and kills processes at random moments. stop ends both.
func (w *world) work(t *testing.T, seed uint64) (stop func()) {
	t.Helper()
	over := make(chan struct{})
	var load, killing sync.WaitGroup
	w.load(&load, over)
	killing.Go(func() { w.kills(t, rand.New(rand.NewPCG(seed, 2)), over) })
	stop = sync.OnceFunc(func() {
		close(over)
		load.Wait()
		killing.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// load starts the clients, in turn at each process.
func (w *world) load(all *sync.WaitGroup, over <-chan struct{}) {
	keys := tracker.Keys(tracker.SeedDemo)
	for i, user := range users() {
		c := &client{
			world: w, name: fmt.Sprint("client", i), base: w.porticos[i%len(w.porticos)].Clients, key: keys[user],
			http: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}, random: rand.New(rand.NewPCG(w.random.Uint64(), 3)),
		}
		round := c.attach
		switch user {
		case "admin@demo.example", "editor@demo.example":
			round = c.types
		case "reviewer@demo.example":
			round = c.rpc
		case "reporter@demo.example":
			continue // may change nothing of others
		}
		all.Go(func() {
			defer c.http.CloseIdleConnections()
			c.run(over, round)
		})
	}
}
