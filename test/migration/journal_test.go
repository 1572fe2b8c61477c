package migration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// configurationCopied has all writes copied from the old tracker to the new one, which gives out other ids.
const configurationCopied = `trackers:
  before: {url: "%[1]s/", dialect: bugzilla-5, timeout: 1s}
  after: {url: "%[2]s/", dialect: bugzilla-5, timeout: 1s, credentials: %[5]s}
primary: before
candidate: after
state: "sqlite:%[3]s"
limits: {queue_wait: 1s}
callers:
  other: {keys: {before: {file: "%[4]s/other"}, after: {file: "%[4]s/other"}}}
switchover:
  ids:
    attachment: {mode: offset}
  journal: {key_file: "%[4]s/key", spool: "%[4]s/spool", max_inline: 1KiB, service_key_file: "%[4]s/service", primary_service_key_file: "%[4]s/service"}
  rules:
    - {name: all, reads: old, writes: old, replicate: true}
canary: {sample: 0}
log: {level: warn}
`

// copied is Portico before two trackers, of which one gets copies of the writes of the other.
type copied struct {
	*process.Facade
	bases [2]string
	file  string
	bug   int
}

func setCopied(t *testing.T, credentials string) *copied {
	t.Helper()
	c := &copied{}
	for side := range c.bases {
		server := tracker.New(tracker.Options{Seed: tracker.SeedDemo})
		listener := httptest.NewServer(server)
		t.Cleanup(func() { listener.Close(); _ = server.Close() })
		c.bases[side] = listener.URL
	}
	_, answer := ask(t, "POST", c.bases[0]+"/rest/bug", map[string]any{"product": "WebShop", "component": "Checkout", "summary": "s", "version": "1"})
	c.bug = number(answer["id"])
	ask(t, "POST", c.bases[1]+"/rest/bug", map[string]any{"product": "WebShop", "component": "Checkout", "summary": "s", "version": "1"})
	for range 3 { // the new tracker's ids run ahead
		ask(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", c.bases[1], c.bug), upload())
	}
	dir := t.TempDir()
	c.file = filepath.Join(dir, "portico.yaml")
	text := fmt.Sprintf(configurationCopied, c.bases[0], c.bases[1], filepath.Join(dir, "state.db"), dir, credentials)
	for name, content := range map[string]string{
		"portico.yaml": text, "key": "0123456789abcdef0123456789abcdef", "service": tracker.Keys(tracker.SeedDemo)["admin@demo.example"],
		"other": tracker.Keys(tracker.SeedDemo)["developer@demo.example"],
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	c.Facade = process.Serve(t, nil, "serve", "--config", c.file)
	return c
}

// journal runs portico migrate journal.
func (c *copied) journal(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), process.Portico(t), append(append([]string{"migrate", "journal"}, args...), "--config", c.file)...).CombinedOutput()
	if err != nil {
		t.Fatalf("portico migrate journal %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// entries are those of the journal that are not finished.
func (c *copied) entries(t *testing.T) (found struct {
	Status  journal.Status
	Entries []state.JournalEntry
}) {
	t.Helper()
	must(t, json.Unmarshal([]byte(c.journal(t, "list", "--output", "json")), &found))
	return found
}

// summaries counts the attachments of the bug at a tracker by their summaries.
func (c *copied) summaries(t *testing.T, side int) map[string]int {
	t.Helper()
	_, answer := ask(t, "GET", fmt.Sprintf("%s/rest/bug/%d/attachment?exclude_fields=data", c.bases[side], c.bug), nil)
	bugs, _ := answer["bugs"].(map[string]any)
	list, _ := bugs[fmt.Sprint(c.bug)].([]any)
	found := map[string]int{}
	for _, one := range list {
		item, _ := one.(map[string]any)
		found[fmt.Sprint(item["summary"])]++
	}
	delete(found, "s")
	return found
}

// TestCopiesShowNoStrangeCredentials: a tracker that callers show no keys to gets copies by the service, and so does one where the caller's
// token, which another tracker has issued, is unknown.
func TestCopiesShowNoStrangeCredentials(t *testing.T) {
	const editor, service = "editor@demo.example", "admin@demo.example"
	for _, tt := range []struct{ credentials, header, creator string }{
		{"forward", keyHeader, editor}, {"forward", "X-BUGZILLA-TOKEN", service}, {"mapped", keyHeader, service},
	} {
		c := setCopied(t, tt.credentials)
		shown := tracker.Keys(tracker.SeedDemo)[editor]
		if tt.header != keyHeader {
			_, answer := ask(t, "GET", c.bases[0]+"/rest/login?login="+editor+"&password=demo-password", nil)
			shown = fmt.Sprint(answer["token"])
		}
		s := &strangers{Facade: c.Facade}
		if status, reason, text := s.ask(t, "POST", fmt.Sprintf("/rest/bug/%d/attachment", c.bug), newBug, tt.header, shown); status >= 300 {
			t.Fatalf("%+v: %d %s %s", tt, status, reason, text)
		}
		process.Eventually(t, "the write is copied", func() bool { return c.entries(t).Status.Pending == 0 })
		_, list := ask(t, "GET", fmt.Sprintf("%s/rest/bug/%d/attachment?include_fields=summary,creator", c.bases[1], c.bug), nil)
		if got := fmt.Sprint(list); !strings.Contains(got, "creator:"+tt.creator+" summary:by its other key") {
			t.Errorf("%+v: the new tracker has %s", tt, got)
		}
	}
}

// TestWritesAreCopiedThroughAKill kills Portico while clients write. Afterwards each acknowledged write is at both trackers once, or in a parked
// lane that says why.
func TestWritesAreCopiedThroughAKill(t *testing.T) {
	c := setCopied(t, "forward")
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var acknowledged sync.Map // summaries
	var writes atomic.Int64
	var all sync.WaitGroup
	over := make(chan struct{})
	for worker := range 3 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				c.write(t, fmt.Sprintf("%d-%d", worker, n), &acknowledged, &writes)
			}
		})
	}
	for range 2 {
		before := writes.Load()
		process.Eventually(t, "some writes are acknowledged", func() bool { return writes.Load() > before+5 })
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		c.Kill(t)
		c.Start(t)
	}
	close(over)
	all.Wait()
	var parked []state.JournalEntry // and what waits for them: in their lanes, and in lanes of objects that are still to be created
	process.Eventually(t, "everything is copied or parked", func() bool {
		parked = c.entries(t).Entries
		stopped := map[string]bool{}
		for _, e := range parked {
			stopped[e.Lane] = stopped[e.Lane] || e.Status == state.JournalParked
			stopped[e.Made] = stopped[e.Lane]
		}
		return !slices.ContainsFunc(parked, func(e state.JournalEntry) bool { return !stopped[e.Lane] })
	})
	for _, e := range parked {
		if e.Status == state.JournalParked && e.Reason == "" {
			t.Errorf("entry %d is parked without a reason", e.Seq)
		}
	}
	old, next := c.summaries(t, 0), c.summaries(t, 1)
	missing := 0
	acknowledged.Range(func(summary, _ any) bool {
		name := summary.(string)
		if next[name] == 0 {
			missing++ // in a parked lane
		}
		if old[name] != 1 || next[name] > 1 || missing > len(parked) {
			t.Errorf("%q was acknowledged, and is %d times at the old and %d times at the new tracker", name, old[name], next[name])
		}
		return true
	})
	if len(parked) == 0 && !maps.Equal(old, next) {
		t.Errorf("the trackers differ: %v and %v", old, next)
	}
	t.Logf("%d writes were acknowledged, %d entries are parked", writes.Load(), len(parked))
}

// write makes an attachment and renames it, and notes what was acknowledged.
func (c *copied) write(t *testing.T, name string, acknowledged *sync.Map, writes *atomic.Int64) {
	body := upload()
	body["summary"] = name
	id := c.send(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", c.Clients, c.bug), body)
	if id == 0 {
		time.Sleep(20 * time.Millisecond)
		return
	}
	writes.Add(1)
	acknowledged.Store(name, true)
	// An update whose outcome is unknown may have changed the name.
	acknowledged.Delete(name)
	if c.send(t, "PUT", fmt.Sprintf("%s/rest/bug/attachment/%d", c.Clients, id), map[string]any{"summary": name + " renamed"}) != 0 {
		writes.Add(1)
		acknowledged.Store(name+" renamed", true)
	}
}

// send makes a request that may fail while Portico is away. It returns the id in the response, 0 after a failure.
func (c *copied) send(t *testing.T, method, address string, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return 0
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(string(text)))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-BUGZILLA-API-KEY", tracker.Keys(tracker.SeedDemo)["admin@demo.example"])
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	var answer struct {
		IDs         []int
		Attachments []struct{ ID int }
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil || response.StatusCode >= 300 {
		return 0
	}
	for _, one := range answer.Attachments {
		answer.IDs = append(answer.IDs, one.ID)
	}
	if len(answer.IDs) != 1 {
		return 0
	}
	return answer.IDs[0]
}

// TestHangingUpEndsNoRecordedWrite: Portico waits for the tracker, so no object is held up by an outcome that is not known.
func TestHangingUpEndsNoRecordedWrite(t *testing.T) {
	t.Parallel()
	c := setCopied(t, "forward")
	address := fmt.Sprintf("%s/rest/bug/%d/attachment?api_key=%s", c.Clients, c.bug, tracker.Keys(tracker.SeedDemo)["admin@demo.example"])
	body, err := json.Marshal(upload())
	must(t, err)
	for n := range 40 {
		client := &http.Client{Timeout: time.Duration(n+1) * 500 * time.Microsecond}
		if response, err := client.Post(address, "application/json", strings.NewReader(string(body))); err == nil {
			_ = response.Body.Close()
		}
		client.CloseIdleConnections()
	}
	for _, e := range c.entries(t).Entries {
		if strings.Contains(e.Reason, "canceled") {
			t.Errorf("entry %d: %s", e.Seq, e.Reason)
		}
	}
}

// TestEachBugUnderAllOfItsNamesGetsItsCopy: an attachment has the same bug at both trackers, whatever the order of a request and the names of its bugs.
func TestEachBugUnderAllOfItsNamesGetsItsCopy(t *testing.T) {
	c := setCopied(t, "forward")
	bugs := map[int]any{}
	for _, ids := range [][]any{{2, "lost-basket"}, {"lost-basket"}, {"lost-basket", 2, 1}, {1, 1}, {"slash-search", 2}} {
		body := upload()
		body["ids"] = ids
		status, answer := ask(t, "POST", c.Clients+"/rest/bug/1/attachment", body)
		made, _ := answer["ids"].([]any)
		if status != http.StatusCreated || len(made) == 0 {
			t.Fatalf("%v: %d %v", ids, status, answer)
		}
		for _, id := range made {
			bugs[number(id)] = bugOf(t, c.bases[0], number(id))
		}
	}
	process.Eventually(t, "everything is copied", func() bool { return c.entries(t).Status.Pending == 0 })
	(&scene{Facade: c.Facade}).change(t, "a move", switchover.Rule{Name: "one", Products: []string{"WebShop"}, Reads: switchover.PhaseNew, Writes: switchover.PhaseNew, Replicate: true})
	for id, bug := range bugs {
		wants(t, fmt.Sprintf("the bug of attachment %d", id), bugOf(t, c.Clients, id), bug)
	}
}

// bugOf is the bug that an attachment is in.
func bugOf(t *testing.T, base string, id int) any {
	t.Helper()
	_, answer := ask(t, "GET", fmt.Sprintf("%s/rest/bug/attachment/%d?include_fields=bug_id", base, id), nil)
	found, _ := answer["attachments"].(map[string]any)
	one, _ := found[fmt.Sprint(id)].(map[string]any)
	return one["bug_id"]
}

// TestNothingIsWrittenToARemovedStore: what is recorded in a file without a name would be lost at the next start.
func TestNothingIsWrittenToARemovedStore(t *testing.T) {
	c := setCopied(t, "forward")
	address := fmt.Sprintf("%s/rest/bug/%d/attachment", c.Clients, c.bug)
	status, _ := ask(t, "POST", address, upload())
	wants(t, "a write", status, http.StatusCreated)
	must(t, os.Remove(filepath.Join(filepath.Dir(c.file), "state.db")))
	status, header, _ := askWith(t, "POST", address, upload(), http.Header{})
	wants(t, "a write after the store was removed", fmt.Sprint(status, header.Get("Portico-Error")), "503journal-unavailable")
}
