package migration

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/switchover"
)

var (
	seeds   = flag.Int("seeds", 0, "how many moves the proof makes with PostgreSQL, each with another seed")
	embeds  = flag.Int("sqlite", 0, "how many moves the proof makes with SQLite")
	dump    = flag.String("dump", "", "write the journal of a move that fails to this `FILE`")
	moments = flag.Int("moments", 1, "at how many moments after each part of a move both trackers are compared, at which going back is called safe")
	first   = flag.Uint64("seed", 0, "the first seed; 0 means any")
)

// TestAMoveLosesNothing moves a product to the new tracker, half-way back and again to the new one, while clients write and everything is killed.
func TestAMoveLosesNothing(t *testing.T) {
	if *seeds+*embeds == 0 {
		t.Skip("a long run: make migration-long")
	}
	seed, safe := *first, 0
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	for n := range uint64(*seeds) {
		t.Run(fmt.Sprint("PostgreSQL-", seed+n), func(t *testing.T) { safe += moveThere(t, seed+n, true) })
	}
	for n := range uint64(*embeds) {
		t.Run(fmt.Sprint("SQLite-", seed+n), func(t *testing.T) { safe += moveThere(t, seed+n, false) })
	}
	t.Logf("%d moments at which going back was called safe, and both trackers were the same", safe)
}

// moveThere makes one move. It returns at how many moments going back was safe.
func moveThere(t *testing.T, seed uint64, postgres bool) (safe int) {
	t.Helper()
	w := startWorld(t, seed, postgres)
	stop := w.work(t, seed)
	t.Cleanup(func() {
		if t.Failed() && *dump != "" {
			out, _ := exec.CommandContext(context.Background(), process.Portico(t), "migrate", "journal", "list", "--all", "--output", "json", "--config", w.file).Output()
			_ = os.WriteFile(*dump, out, 0o600)
			_ = os.WriteFile(*dump+".faults", []byte(strings.Join(w.book.faults, "\n")), 0o600)
			for _, d := range w.trackers {
				text, _ := os.ReadFile(filepath.Join(d.dir, servedFile))
				_ = os.WriteFile(*dump+"."+d.name, text, 0o600)
			}
		}
	})
	for _, part := range []struct {
		to   switchover.PhasePair
		back bool
	}{
		{switchover.PhasePair{Reads: switchover.PhaseNew, Writes: switchover.PhaseNew}, false},
		{switchover.PhasePair{Reads: switchover.PhaseNewCompare, Writes: switchover.PhaseOldCompare}, true},
		{switchover.PhasePair{Reads: switchover.PhaseNew, Writes: switchover.PhaseNew}, false},
	} {
		w.move(t, part.to, part.back)
		for range *moments {
			if part.to.Writes.New() { // without writes there, going back is always safe
				time.Sleep(time.Duration(w.random.IntN(2000)) * time.Millisecond)
				w.goingBack(t)
			}
		}
	}
	stop()
	w.judge(t)
	return w.book.counts[safeMoment]
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

// fetch reads from a tracker as its administrator.
func fetch(t *testing.T, address string) (status int, text []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"?Bugzilla_api_key="+tracker.Keys(tracker.SeedDemo)["admin@demo.example"], nil)
	must(t, err)
	process.Eventually(t, address+" responds", func() bool {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		status = response.StatusCode
		text, err = io.ReadAll(response.Body)
		return err == nil
	})
	return status, text
}
