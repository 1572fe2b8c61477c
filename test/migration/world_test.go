package migration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/proxy/admin/pages/transition"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// configurationWorld is two trackers with other ids from the start. All writes of one product are copied.
const configurationWorld = `trackers:
  before: {url: "%[1]s/", dialect: bugzilla-5, timeout: 1s}
  after: {url: "%[2]s/", dialect: bugzilla-5, timeout: 1s}
primary: before
candidate: after
state: "%[3]s"
callers:
%[5]slimits: {queue_wait: 500ms}
cache: {scope: off}
switchover:
  ids:
    bug: {mode: table}
    attachment: {mode: table}
    flag_type: {mode: table}
    flag: {mode: table}
  passthrough: {reads: old, writes: old, copied: true} # what the tests pass through is about products that stay
  journal: {key_file: "%[4]s/key", spool: "%[4]s/spool", max_inline: 1KiB, service_key_file: "%[4]s/service", primary_service_key_file: "%[4]s/service"}
  rules:
    - {name: shop, product: WebShop, reads: old, writes: old, replicate: true}
    - {name: rest, reads: old, writes: old}
canary: {sample: 0}
log: {level: error}
`

// world is one or two Portico processes before two trackers, all of which are killed at times.
type world struct {
	porticos []*process.Facade
	trackers [2]*durableTracker
	database *process.Database // nil with SQLite
	relay    *process.Relay    // before the database
	file     string
	// bugs are those of the product, under the ids that clients know, natives those of each tracker.
	bugs    []int
	natives [2][]int
	random  *rand.Rand
	book    book
	// brief makes everything follow sooner. allKilled says that each process was killed.
	brief     bool
	allKilled atomic.Bool
	// skipped counts entries that were left out: from then on going back is unsafe.
	skipped int
}

const bugsOfWorld = 2

func startWorld(t *testing.T, seed uint64, postgres bool) *world {
	t.Helper()
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), book: newBook()}
	dir := t.TempDir()
	dsn, processes := "sqlite:"+filepath.Join(dir, "state.db"), 1
	if postgres {
		w.database = process.PostgresServer(t)
		dsn, w.relay = process.RelayDatabase(t, w.database.DSN)
		processes = 2
	}
	w.trackers = [2]*durableTracker{startDurable(t, "before"), startDurable(t, "after")}
	w.file = filepath.Join(dir, "portico.yaml")
	for name, content := range map[string]string{
		"portico.yaml": fmt.Sprintf(configurationWorld, w.trackers[0].base, w.trackers[1].base, dsn, dir, writeCallers(t, dir)),
		"key":          "0123456789abcdef0123456789abcdef", "service": admin(),
		"ids.csv": w.seed(t),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	run(t, "migrate", "ids", "import", filepath.Join(dir, "ids.csv"), "--config", w.file)
	for range processes {
		w.porticos = append(w.porticos, process.Serve(t, nil, "serve", "--config", w.file))
	}
	return w
}

// users are those of the clients, in the order of their names.
func users() []string { return slices.Sorted(maps.Keys(tracker.Keys(tracker.SeedDemo))) }

// writeCallers writes the keys of the clients into files, and returns the section of the configuration that names them.
func writeCallers(t *testing.T, dir string) string {
	t.Helper()
	section := &strings.Builder{}
	for i, user := range users() {
		file := filepath.Join(dir, fmt.Sprint("key", i))
		must(t, os.WriteFile(file, []byte(tracker.Keys(tracker.SeedDemo)[user]), 0o600))
		fmt.Fprintf(section, "  client%d: {keys: {before: {file: %q}, after: {file: %[2]q}}}\n", i, file)
	}
	return section.String()
}

// seed makes the same objects at both trackers, under different ids, and returns which ones belong together.
func (w *world) seed(t *testing.T) string {
	t.Helper()
	ids := &strings.Builder{}
	ids.WriteString("kind,client,new\n")
	for range 5 { // of which the old tracker knows nothing, so that the ids of all kinds differ
		makeTwin(t, w.trackers[1].base, fmt.Sprintf("extra-%d", w.random.Uint32()))
	}
	for n := range bugsOfWorld {
		name := fmt.Sprintf("kind-%d", n)
		old, next := makeTwin(t, w.trackers[0].base, name), makeTwin(t, w.trackers[1].base, name)
		fmt.Fprintf(ids, "bug,%d,%d\nattachment,%d,%d\nflag,%d,%d\nflag_type,%d,%d\n",
			old.bug, next.bug, old.attachment, next.attachment, old.flag, next.flag, old.flagType, next.flagType)
		w.bugs = append(w.bugs, old.bug)
		w.natives[0], w.natives[1] = append(w.natives[0], old.bug), append(w.natives[1], next.bug)
		w.book.shared = append(w.book.shared, old.attachment)
	}
	for id := 1; id <= 10; id++ { // those that both trackers have from their seed
		fmt.Fprintf(ids, "flag_type,%d,%d\n", id, id)
	}
	return ids.String()
}

// status is what a process says of the rules, nil while it is away.
func (w *world) status(t *testing.T) *switchover.Status {
	t.Helper()
	var status switchover.Status
	if exit, out, _ := process.Run(t, "migrate", "status", "--output", "json", "--admin", w.porticos[0].Operators); exit != 0 || json.Unmarshal([]byte(out), &status) != nil {
		return nil
	}
	return &status
}

// overridden are the preconditions that a test cannot earn in seconds.
var overridden = []string{"verdict", "freshness", "errors", "stability"}

// step takes the rule one step, however long processes are away meanwhile. Where it moves reads or writes, what was acknowledged before has to be seen
// by all reads after it. Any other step waits for no copy.
func (w *world) step(t *testing.T, from switchover.PhasePair, version int64, back bool) {
	t.Helper()
	verb := "advance"
	if back {
		verb = "reverse"
	}
	acknowledged, next := w.book.mark(), from.Step(back)
	movesReads := from.Reads.New() != next.Reads.New()
	if movesReads {
		w.settle(t) // moving writes waits for the copies by itself
	}
	args := []string{"migrate", verb, "shop", "--actor", "a test", "--reason", "a test", "--version", fmt.Sprint(version)}
	for _, name := range overridden {
		args = append(args, "--despite", name)
	}
	said, began := "", time.Now()
	w.await(t, func() string { return fmt.Sprintf("%s from %v ends: %s", verb, from, said) }, func() bool {
		sent := append(slices.Clone(args), "--admin", w.porticos[w.random.IntN(len(w.porticos))].Operators)
		if w.skipped > 0 { // the operator knows what is missing
			sent = append(sent, "--despite", "losses")
		}
		exit, _, out := process.Run(t, sent...)
		if exit != 0 {
			said = out
			found, _ := w.entries(t)
			w.operate(t, found.Entries) // a parked entry holds up the move
		}
		now := w.status(t)
		return now != nil && now.Version > version
	})
	if movesReads || from.Writes.New() != next.Writes.New() {
		w.book.moved(acknowledged)
	}
	t.Logf("%s to %v from version %d took %v", verb, next, version, time.Since(began).Round(time.Millisecond))
}

// move takes the rule step by step to its phases.
func (w *world) move(t *testing.T, to switchover.PhasePair, back bool) {
	t.Helper()
	for {
		var now *switchover.Status
		w.await(t, func() string { return "the status" }, func() bool { now = w.status(t); return now != nil })
		from := now.Table.Rules[0].Phases()
		if from == to {
			return
		}
		if from.Reads.New() != from.Step(back).Reads.New() || from.Writes.New() != from.Step(back).Writes.New() {
			w.pause(1800)
		}
		w.step(t, from, now.Version, back)
	}
}

// pause lets the clients work for a while, at most so many milliseconds.
func (w *world) pause(most int) {
	if w.brief {
		most /= 4
	}
	time.Sleep(time.Duration(most/6+w.random.IntN(most*5/6)) * time.Millisecond)
}

// await waits for something on a busy machine, where processes are away at times.
func (w *world) await(t *testing.T, what func() string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this did not come about: ", what())
		}
	}
}

// entries are those of the journal that are not finished.
func (w *world) entries(t *testing.T) (found struct {
	Status  journal.Status
	Entries []state.JournalEntry
}, ok bool) {
	t.Helper()
	exit, out, _ := process.Run(t, "migrate", "journal", "list", "--output", "json", "--config", w.file)
	return found, exit == 0 && json.Unmarshal([]byte(out), &found) == nil
}

// outlook is whether going back is called safe at this moment, empty while no process says it.
func (w *world) outlook(t *testing.T) journal.OutlookState {
	t.Helper()
	_, out, _ := process.Run(t, "migrate", "plan", "--rule", "shop", "--output", "json", "--admin", w.porticos[0].Operators)
	var plan transition.Plan
	if json.Unmarshal([]byte(out), &plan) != nil || len(plan.Steps) == 0 {
		return ""
	}
	return plan.Steps[0].GoingBack.State
}

// goingBack waits for a moment at which going back is called safe, keeps the clients from writing, waits for the drain, and compares both trackers.
func (w *world) goingBack(t *testing.T) {
	t.Helper()
	said := journal.OutlookState("")
	for end := time.Now().Add(3 * time.Minute); said != journal.OutlookSafe; {
		if time.Now().After(end) {
			t.Fatalf("going back is not safe: %q", said)
		}
		w.await(t, func() string { return "going back is safe, and not " + string(said) }, func() bool {
			found, _ := w.entries(t)
			w.operate(t, found.Entries)
			said = w.outlook(t)
			return said == journal.OutlookSafe || said == journal.OutlookDrain || said == journal.OutlookUnsafe && w.skipped > 0
		})
		if said == journal.OutlookUnsafe {
			return
		}
		said = w.compared(t)
	}
}

// safeMoment is what is counted where both trackers were the same when going back was called safe.
const safeMoment = "moments at which going back was safe"

// compared keeps the clients from writing, waits for the drain, and compares both trackers, unless going back is not safe any more.
func (w *world) compared(t *testing.T) (said journal.OutlookState) {
	t.Helper()
	w.book.paused.Lock()
	defer w.book.paused.Unlock()
	w.await(t, func() string { return "the drain ends" }, func() bool {
		said = w.outlook(t)
		return said != journal.OutlookDrain && said != ""
	})
	if said == journal.OutlookSafe {
		old, next := w.read(t, 0), w.read(t, 1)
		if !maps.Equal(old.objects, next.objects) || !maps.Equal(old.said, next.said) {
			w.book.wrong("going back was called safe, and the trackers differ: %s", differences(old, next))
		}
		w.book.count(safeMoment)
	}
	return said
}

// killed is a process that can be killed and started again.
type killed struct {
	name  string
	kill  func()
	start func() error
}

func (w *world) victims(t *testing.T) (all []killed) {
	t.Helper()
	for i, p := range w.porticos {
		all = append(all, killed{fmt.Sprintf("portico %d", i), func() { p.Kill(t) }, p.Begin})
	}
	for _, d := range w.trackers {
		all = append(all, killed{"tracker " + d.name, func() { d.Kill(t) }, d.Begin})
	}
	if w.database != nil {
		cut := func() { w.relay.CutBefore.Add(1); w.relay.CutAfter.Add(1) }
		all = append(all, killed{"PostgreSQL", func() { must(t, w.database.Kill()) }, w.database.Begin}, killed{"a COMMIT", cut, func() error { return nil }})
	}
	return all
}

// kills kills processes at random moments, each at least once, until over is closed, and starts them again. In a brief move each is killed once.
func (w *world) kills(t *testing.T, random *rand.Rand, over <-chan struct{}) {
	t.Helper()
	var left []killed
	least, more := 3000, 5000 // milliseconds to the next one
	if w.brief {
		least, more = 500, 2500
	}
	for round := 0; ; {
		if len(left) == 0 {
			if w.allKilled.Store(round > 0); w.brief && round > 0 {
				return
			}
			round++
			left = w.victims(t)
			random.Shuffle(len(left), func(i, k int) { left[i], left[k] = left[k], left[i] })
		}
		select {
		case <-over:
			return
		case <-time.After(time.Duration(least+random.IntN(more)) * time.Millisecond):
		}
		victim := left[0]
		left = left[1:]
		victim.kill()
		away := time.Duration(random.IntN(700)) * time.Millisecond
		t.Logf("%s is killed, and away for %v", victim.name, away)
		time.Sleep(away)
		if err := victim.start(); err != nil {
			t.Errorf("%s does not start again: %v", victim.name, err)
			return
		}
	}
}
