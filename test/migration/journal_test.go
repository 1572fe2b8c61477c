package migration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
  before: {url: "%[1]s/", dialect: bugzilla-5, timeout: 5s}
  after: {url: "%[2]s/", dialect: bugzilla-5, timeout: 5s, credentials: %[5]s}
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

// setCopied starts Portico. around changes what the trackers do.
func setCopied(t *testing.T, credentials string, around ...func(http.Handler) http.Handler) *copied {
	t.Helper()
	c := &copied{}
	for side := range c.bases {
		server := tracker.New(tracker.Options{Seed: tracker.SeedDemo})
		handler := http.Handler(server)
		for _, wrap := range around {
			handler = wrap(handler)
		}
		c.bases[side] = listen(t, server, handler)
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
		"portico.yaml": text, "key": "0123456789abcdef0123456789abcdef", "service": admin(),
		"other": tracker.Keys(tracker.SeedDemo)["developer@demo.example"],
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	c.Facade = process.Serve(t, nil, "serve", "--config", c.file)
	return c
}

// entries are those of the journal that are not finished.
func (c *copied) entries(t *testing.T) (found struct {
	Status  journal.Status
	Entries []state.JournalEntry
}) {
	t.Helper()
	must(t, json.Unmarshal([]byte(run(t, "migrate", "journal", "list", "--output", "json", "--config", c.file)), &found))
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
		if got := send(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", c.Clients, c.bug), newBug, tt.header, shown); got.status >= 300 {
			t.Fatalf("%+v: %d %s", tt, got.status, got.text)
		}
		process.Eventually(t, "the write is copied", func() bool { return c.entries(t).Status.Pending == 0 })
		_, list := ask(t, "GET", fmt.Sprintf("%s/rest/bug/%d/attachment?include_fields=summary,creator", c.bases[1], c.bug), nil)
		if got := fmt.Sprint(list); !strings.Contains(got, "creator:"+tt.creator+" summary:by its other key") {
			t.Errorf("%+v: the new tracker has %s", tt, got)
		}
	}
}

// TestHangingUpEndsNoRecordedWrite: Portico waits for the tracker, so no object is held up by an outcome that is not known.
func TestHangingUpEndsNoRecordedWrite(t *testing.T) {
	t.Parallel()
	c := setCopied(t, "forward")
	for n := range 40 {
		client := &http.Client{Timeout: time.Duration(n+1) * 500 * time.Microsecond}
		_, _ = request(t.Context(), client, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", c.Clients, c.bug), upload(), keyHeader, admin())
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
	for _, ids := range [][]any{{2, "lost-basket"}, {"lost-basket"}, {"lost-basket", 2, 1}, {1, 1}} {
		body := upload()
		body["ids"] = ids
		got, answer := ask(t, "POST", c.Clients+"/rest/bug/1/attachment", body)
		made, _ := answer["ids"].([]any)
		if got.status != http.StatusCreated || len(made) == 0 {
			t.Fatalf("%v: %d %v", ids, got.status, answer)
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

// TestAPassingWriteLeavesATrace also where Portico is killed before the tracker responds to the first one of its kind: going back would lose it.
func TestAPassingWriteLeavesATrace(t *testing.T) {
	t.Parallel()
	came, over := make(chan struct{}, 1), make(chan struct{})
	c := setCopied(t, "forward", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/rest/product" {
				came <- struct{}{}
				<-over
			}
			next.ServeHTTP(w, r)
		})
	})
	defer close(over)
	go func() {
		_, _ = request(t.Context(), http.DefaultClient, "POST", c.Clients+"/rest/product", "{}", keyHeader, admin())
	}()
	<-came
	c.Kill(t)
	c.Start(t)
	losses := c.entries(t).Status.Losses
	if len(losses) != 1 || losses[0].Receiver != "after" || losses[0].What != "POST /rest/product, whose outcome is not known" {
		t.Errorf("the losses are %+v", losses)
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
	got, _ := ask(t, "POST", address, upload())
	wants(t, "a write", got.status, http.StatusCreated)
	must(t, os.Remove(filepath.Join(filepath.Dir(c.file), "state.db")))
	got, _ = ask(t, "POST", address, upload())
	wants(t, "a write after the store was removed", fmt.Sprint(got.status, got.header.Get("Portico-Error")), "503journal-unavailable")
}

// TestAFileThatCannotBeOpenedParksNothing: while large content is out of reach, its copy waits. Afterwards it is made without an operator.
func TestAFileThatCannotBeOpenedParksNothing(t *testing.T) {
	c := setCopied(t, "forward")
	signed := []string{"--actor", "a test", "--reason", "a test", "--config", c.file}
	run(t, append([]string{"migrate", "journal", "start"}, signed...)...)
	body := upload()
	body["data"], body["summary"] = strings.Repeat("aGVs", 1<<10), "large"
	got, _ := ask(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", c.Clients, c.bug), body)
	wants(t, "a write", got.status, http.StatusCreated)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(c.file), "spool", "*"))
	content := files[0]
	must(t, os.Rename(content, content+"-away"))
	must(t, os.Symlink(content, content)) // not even root can open it
	run(t, append([]string{"migrate", "journal", "resume"}, signed...)...)
	process.Eventually(t, "the copy is tried", func() bool { return c.entries(t).Entries[0].Reason != "" })
	if e := c.entries(t).Entries[0]; e.Status != state.JournalPending {
		t.Errorf("the entry is %s: %s", e.Status, e.Reason)
	}
	must(t, os.Rename(content+"-away", content))
	process.Eventually(t, "the write is copied", func() bool { return c.summaries(t, 1)["large"] == 1 })
}

// TestACopyUnderWayIsFinishedAtTheEnd: after an orderly end no outcome is unknown.
func TestACopyUnderWayIsFinishedAtTheEnd(t *testing.T) {
	t.Parallel()
	came := make(chan struct{}, 1)
	var writes atomic.Int32
	c := setCopied(t, "forward", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // or a hang-up would not be noticed
			r.Body = io.NopCloser(bytes.NewReader(body))
			if r.Method == http.MethodPost && writes.Add(-1) == 0 { // the copy
				came <- struct{}{}
				select {
				case <-r.Context().Done():
					return
				case <-time.After(time.Second):
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	writes.Store(2)
	got, _ := ask(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", c.Clients, c.bug), map[string]any{
		"data": "aGVsbG8=", "file_name": "f", "summary": "copied", "content_type": "text/plain",
	})
	wants(t, "a write", got.status, http.StatusCreated)
	<-came
	c.Stop(t)
	wants(t, "the copies", c.summaries(t, 1)["copied"], 1)
	if left := c.entries(t).Entries; len(left) > 0 {
		t.Errorf("entry %d is %s: %s", left[0].Seq, left[0].Status, left[0].Reason)
	}
}
