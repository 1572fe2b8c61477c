package migration

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
)

// offset is what clients see the objects of the new tracker with.
const offset = 1_000_000_000

// twin is one object of each kind under its ids at one tracker.
type twin struct{ bug, attachment, flag, flagType int }

// apart is Portico before two trackers that have the same objects under different ids.
type apart struct {
	*process.Facade
	bases    [2]string // of the old and the new tracker
	old, new twin
	file     string
}

// configurationApart moves one product to the new tracker, where it is called otherwise.
const configurationApart = `trackers:
  before: {url: "%s/", dialect: bugzilla-5}
  after: {url: "%s/", dialect: bugzilla-5}
primary: before
candidate: after
state: "sqlite:%s"
switchover:
  ids:
    bug: {mode: table}
    attachment: {mode: table}
  names:
    flag_type: {twin: double}
  passthrough: {reads: new, writes: old}
  rules:
    - {name: shop, product: WebShop, reads: new, writes: new}
    - {name: rest, reads: old, writes: old}
canary: {sample: 0}
log: {level: warn}
`

func setApart(t *testing.T) *apart {
	t.Helper()
	a := &apart{}
	a.bases = listenBoth(t, tracker.New(tracker.Options{Seed: tracker.SeedDemo}), tracker.New(tracker.Options{Seed: tracker.SeedDemo}))
	for range 3 { // of which the old tracker knows nothing
		makeTwin(t, a.bases[1], "extra")
	}
	a.old, a.new = makeTwin(t, a.bases[0], "twin"), makeTwin(t, a.bases[1], "double")
	dir := t.TempDir()
	a.file = filepath.Join(dir, "portico.yaml")
	text := fmt.Sprintf(configurationApart, a.bases[0], a.bases[1], filepath.Join(dir, "state.db"))
	must(t, os.WriteFile(a.file, []byte(text), 0o600))
	ids := filepath.Join(dir, "ids.csv")
	must(t, os.WriteFile(ids, fmt.Appendf(nil, "kind,client,new\nbug,%d,%d\nattachment,%d,%d\nflag,%d,%d\nflag_type,%d,%d\n",
		a.old.bug, a.new.bug, a.old.attachment, a.new.attachment, a.old.flag, a.new.flag, a.old.flagType, a.new.flagType), 0o600))
	run(t, "migrate", "ids", "import", ids, "--config", a.file)
	a.Facade = process.Serve(t, nil, "serve", "--config", a.file)
	return a
}

// number reads an id of an answer.
func number(value any) int {
	id, _ := value.(float64)
	return int(id)
}

// makeTwin makes one object of each kind.
func makeTwin(t *testing.T, base, flagType string) (made twin) {
	t.Helper()
	_, answer := ask(t, "POST", base+"/rest/bug", map[string]any{"product": "WebShop", "component": "Checkout", "summary": "s", "version": "1"})
	made.bug = number(answer["id"])
	_, answer = ask(t, "POST", base+"/rest/flag_type", map[string]any{
		"name": flagType, "description": "d", "target_type": "attachment", "inclusions": []any{"WebShop"},
	})
	made.flagType = number(answer["id"])
	_, answer = ask(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", base, made.bug), upload(map[string]any{"type_id": made.flagType, "status": "?"}))
	ids, _ := answer["ids"].([]any)
	if len(ids) != 1 {
		t.Fatalf("an attachment was not made: %v", answer)
	}
	made.attachment = number(ids[0])
	found := attachment(t, base, made.bug, made.attachment)
	flag, _ := found["flags"].([]any)[0].(map[string]any)
	made.flag = number(flag["id"])
	if made.bug*made.attachment*made.flag*made.flagType == 0 {
		t.Fatalf("the objects are %+v", made)
	}
	return made
}

func upload(flags ...any) map[string]any {
	return map[string]any{
		"data": base64.StdEncoding.EncodeToString([]byte("content")), "file_name": "f", "summary": "s", "content_type": "text/plain", "flags": flags,
	}
}

// attachment reads one attachment in the list of its bug.
func attachment(t *testing.T, base string, bug, id int) map[string]any {
	t.Helper()
	got, answer := ask(t, "GET", fmt.Sprintf("%s/rest/bug/%d/attachment", base, bug), nil)
	bugs, _ := answer["bugs"].(map[string]any)
	list, _ := bugs[fmt.Sprint(bug)].([]any)
	for _, one := range list {
		if found, _ := one.(map[string]any); number(found["id"]) == id {
			return found
		}
	}
	t.Fatalf("%s: bug %d has no attachment %d: %d %v", base, bug, id, got.status, answer)
	return nil
}

// wants compares a part of an answer with what it should be.
func wants(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestClientsKeepTheirIDs makes all seven operations of a product that is at the new tracker, by the ids that the old one gave out.
func TestClientsKeepTheirIDs(t *testing.T) {
	a := setApart(t)
	types := func() map[string]int {
		found := map[string]int{}
		_, answer := ask(t, "GET", a.Clients+"/rest/flag_type/WebShop", nil)
		list, _ := answer["attachment"].([]any)
		for _, one := range list {
			item, _ := one.(map[string]any)
			found[fmt.Sprint(item["name"])] = number(item["id"])
		}
		return found
	}
	for range 2 { // from the tracker, and from the cache
		wants(t, "flag type of both trackers", types()["twin"], a.old.flagType)
		if id := types()["extra"]; id <= offset {
			t.Errorf("a flag type of the new tracker has the id %d", id)
		}
	}
	flag := map[string]any{"id": a.old.flag, "status": "+"}
	address := fmt.Sprintf("%s/rest/bug/attachment/%d", a.Clients, a.old.attachment)
	got, answer := ask(t, "PUT", address, map[string]any{"ids": []int{a.old.attachment}, "summary": "changed", "flags": []any{flag}})
	wants(t, "update", fmt.Sprint(got.status, " ", number(answer["attachments"].([]any)[0].(map[string]any)["id"])), fmt.Sprint(200, " ", a.old.attachment))
	wants(t, "summary at the old tracker", attachment(t, a.bases[0], a.old.bug, a.old.attachment)["summary"], "s")
	wants(t, "summary at the new tracker", attachment(t, a.bases[1], a.new.bug, a.new.attachment)["summary"], "changed")

	listed := attachment(t, a.Clients, a.old.bug, a.old.attachment)
	seen, _ := listed["flags"].([]any)[0].(map[string]any)
	wants(t, "listed attachment", []any{listed["bug_id"], listed["summary"], seen["id"], seen["type_id"], seen["name"], seen["status"]},
		[]any{a.old.bug, "changed", a.old.flag, a.old.flagType, "twin", "+"})
	got, answer = ask(t, "GET", address, nil)
	byID, _ := answer["attachments"].(map[string]any)
	wants(t, "attachment by id", byID[fmt.Sprint(a.old.attachment)].(map[string]any)["bug_id"], a.old.bug)
	got, _ = ask(t, "GET", address, nil, "If-None-Match", got.header.Get("Etag"))
	wants(t, "the same attachment again", got.status, http.StatusNotModified)

	_, answer = ask(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", a.Clients, a.old.bug), upload(map[string]any{"name": "twin", "status": "?"}))
	ids, _ := answer["ids"].([]any)
	if len(ids) != 1 || number(ids[0]) <= offset {
		t.Fatalf("a new attachment has the ids %v", answer)
	}
	born := number(ids[0])
	wants(t, "new attachment at the new tracker", attachment(t, a.bases[1], a.new.bug, born-offset)["id"], born-offset)
	wants(t, "new attachment", attachment(t, a.Clients, a.old.bug, born)["bug_id"], a.old.bug)
	got, _ = ask(t, "PUT", fmt.Sprintf("%s/rest/bug/attachment/%d", a.Clients, born), map[string]any{"summary": "again"})
	wants(t, "update of the new attachment", got.status, 200)

	got, answer = ask(t, "POST", a.Clients+"/rest/flag_type", map[string]any{
		"name": "later", "description": "d", "target_type": "attachment", "inclusions": []any{"WebShop"},
	})
	made := number(answer["id"])
	if got.status != 201 || made <= offset || made != types()["later"] {
		t.Errorf("a new flag type has the id %d, among %v", made, types())
	}
	got, answer = ask(t, "PUT", fmt.Sprintf("%s/rest/flag_type/%d", a.Clients, a.old.flagType), map[string]any{"ids": []int{made}, "description": "e"})
	var changed []int
	for _, one := range answer["flagtypes"].([]any) {
		changed = append(changed, number(one.(map[string]any)["id"]))
	}
	if got.status != 200 || len(changed) != 2 || changed[0]+changed[1] != made+a.old.flagType {
		t.Errorf("the changed flag types are %v, want %d and %d", changed, a.old.flagType, made)
	}
}

// TestWhatCannotBeTranslatedIsRefused asks for what would be another object.
func TestWhatCannotBeTranslatedIsRefused(t *testing.T) {
	a := setApart(t)
	flags := func(flag map[string]any) map[string]any { return map[string]any{"flags": []any{flag}} }
	address := fmt.Sprintf("%s/rest/bug/attachment/%d", a.Clients, a.old.attachment)
	for _, c := range []struct {
		method, address string
		body            any
		status          int
		says            string
	}{
		{"PUT", address, flags(map[string]any{"id": a.old.flag + 1, "status": "+"}), 404, fmt.Sprintf("flag %d", a.old.flag+1)},
		{"PUT", address, flags(map[string]any{"type_id": a.new.flagType + 1, "status": "+"}), 404, fmt.Sprintf("flag type %d", a.new.flagType+1)},
		{"GET", fmt.Sprintf("%s/rest/bug/%d", a.Clients, a.old.bug), nil, 409, ""},
		{"GET", fmt.Sprintf("%s/rest/bug?id=%d", a.Clients, a.old.bug), nil, 409, ""},
		{"GET", fmt.Sprintf("%s/rest/bug/lost-basket/comment?ids=lost-basket,%d", a.Clients, a.old.bug), nil, 409, ""},
		{"GET", fmt.Sprintf("%s/show_bug.cgi?id=%d", a.Clients, a.old.bug), nil, 409, ""},
		{"GET", fmt.Sprintf("%s/attachment.cgi?id=%d", a.Clients, a.old.attachment), nil, 409, ""},
		{"GET", a.Clients + "/jsonrpc.cgi?method=Bug.attachments&params=[]", nil, 409, ""},
	} {
		got, answer := ask(t, c.method, c.address, c.body)
		if got.status != c.status || got.header.Get("Portico-Error") != "unmapped-id" || !strings.Contains(fmt.Sprint(answer["message"]), c.says) {
			t.Errorf("%s %s: %d %v %v", c.method, c.address, got.status, got.header, answer)
		}
	}
	if got, _ := ask(t, "PUT", fmt.Sprintf("%s/rest/bug/%d", a.Clients, a.old.bug), map[string]any{"summary": "t"}); got.status != 200 {
		t.Errorf("a write that passes through to the old tracker, which knows the id, has the status %d", got.status)
	}
	// The ids that clients know are backed up and put back.
	backup := filepath.Join(t.TempDir(), "ids.csv")
	run(t, "migrate", "ids", "export", backup, "--config", a.file)
	if text := run(t, "migrate", "ids", "import", backup, "--config", a.file); !strings.Contains(text, "4 ids are kept") {
		t.Errorf("the import says %s", text)
	}
	if text := run(t, "migrate", "ids", "check", "--config", a.file); !strings.Contains(text, "4 ids are good") {
		t.Errorf("the check says %s", text)
	}
}

// TestReadsGoOnWithoutTheStore: what Portico has shown before needs no store, at either tracker.
func TestReadsGoOnWithoutTheStore(t *testing.T) {
	a := setApart(t)
	reads := []string{"/rest/flag_type/Mobile%20App?x=1", fmt.Sprintf("/rest/bug/%d/attachment", a.old.bug), fmt.Sprintf("/rest/bug/attachment/%d", a.old.attachment)}
	for _, gone := range []bool{false, true, true} {
		if gone {
			time.Sleep(600 * time.Millisecond) // the store is asked again about what had no pair
		}
		for _, path := range reads {
			got, answer := ask(t, "GET", a.Clients+path, nil, "Cache-Control", "no-cache")
			if got.status != 200 {
				t.Errorf("%s, the store gone %t: %d %v", path, gone, got.status, answer)
			}
		}
		must(t, os.RemoveAll(filepath.Join(filepath.Dir(a.file), "state.db")))
	}
	if got, _ := ask(t, "GET", fmt.Sprintf("%s/rest/bug/attachment/%d", a.Clients, a.old.attachment+1), nil); got.status != 503 {
		t.Errorf("an attachment that Portico has not shown: %d", got.status)
	}
}

// TestIDsOutliveTheOldTracker takes it out of the configuration. Clients keep the ids that they know.
func TestIDsOutliveTheOldTracker(t *testing.T) {
	a := setApart(t)
	_, answer := ask(t, "POST", fmt.Sprintf("%s/rest/bug/%d/attachment", a.Clients, a.old.bug), upload())
	ids, _ := answer["ids"].([]any)
	if len(ids) != 1 {
		t.Fatalf("an attachment was not made: %v", answer)
	}
	a.Stop(t)
	text, err := os.ReadFile(a.file)
	must(t, err)
	_, after, _ := strings.Cut(string(text), "candidate: after\n")
	_, after, _ = strings.Cut(after, "state:")
	settings, _, _ := strings.Cut(after, "  passthrough:")
	for _, c := range []struct{ name, says string }{{"other", "a tracker keeps its name"}, {"after", ""}} {
		one := fmt.Sprintf("trackers:\n  %s: {url: \"%s/\", dialect: bugzilla-5}\nprimary: %[1]s\nstate:%[3]s", c.name, a.bases[1], settings)
		must(t, os.WriteFile(a.file, []byte(one), 0o600))
		if c.says == "" {
			continue
		}
		if status, _, out := process.Run(t, "serve", "--config", a.file, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"); status == 0 || !strings.Contains(out, c.says) {
			t.Errorf("a start with another name: %d\n%s", status, out)
		}
	}
	a.Start(t)
	wants(t, "attachment of both trackers", attachment(t, a.Clients, a.old.bug, a.old.attachment)["bug_id"], a.old.bug)
	wants(t, "attachment of the new tracker", attachment(t, a.Clients, a.old.bug, number(ids[0]))["bug_id"], a.old.bug)
	if got, _ := ask(t, "GET", fmt.Sprintf("%s/rest/bug/%d", a.Clients, a.old.bug), nil); got.status != 409 || got.header.Get("Portico-Error") != "unmapped-id" {
		t.Errorf("a request that is not translated has the status %d", got.status)
	}
}
