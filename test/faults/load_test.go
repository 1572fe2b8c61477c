package faults

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bugs of the fixture that the users dev and editor may attach to.
var bugs = []int{1, 3, 7, 8, 10}

// load is many clients at work on one Portico.
type load struct {
	address string
	book    *book
	left    atomic.Int64
	// done ends the load early or keeps it going until it is closed, when not nil.
	until <-chan struct{}
	kind  kind
	seed  uint64
	// large is the data of the fixture's large attachment.
	large string

	mu        sync.Mutex
	flagTypes []*register
}

// run makes at least n requests from so many clients.
func (l *load) run(clients int, n int64) {
	l.left.Store(n)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			w := &worker{load: l, name: fmt.Sprintf("w%02d", i), rng: rand.New(rand.NewPCG(l.seed, uint64(i)))}
			w.client = client{address: l.address}
			defer w.client.close()
			for l.goesOn() {
				w.step()
			}
		})
	}
	all.Wait()
}

func (l *load) goesOn() bool {
	if l.left.Add(-1) >= 0 {
		return true
	}
	if l.until == nil {
		return false
	}
	select {
	case <-l.until:
		return false
	default:
		return true
	}
}

// worker is one client: one request at a time, and a memory of what it was told.
type worker struct {
	load   *load
	name   string
	rng    *rand.Rand
	client client
	serial int
	// flagType and attachment are values that only this client changes.
	flagType, attachment *register
	// attached is the last attachment known to be at a bug, by bug.
	attached map[int]int
}

// step makes one request.
func (w *worker) step() {
	steps := []struct {
		share int
		do    func()
	}{
		{26, w.readFlagTypes},
		{14, w.readAttachment},
		{8, w.listAttachments},
		{1, w.readLarge},
		{5, w.passRead},
		{16, w.createAttachment},
		{10, w.updateAttachment},
		{8, w.createFlagType},
		{10, w.updateFlagType},
		{2, w.passWrite},
	}
	n := w.rng.IntN(100)
	for _, s := range steps {
		if n -= s.share; n < 0 {
			s.do()
			return
		}
	}
}

// ask makes a request, judges its answer, and gives it when it is a success.
func (w *worker) ask(a ask) (verdict, []byte) {
	t := w.client.do(a)
	v, problem := t.judge()
	passed := strings.HasSuffix(a.path, "/comment") && t.header.Get("Portico-Error") == ""
	switch {
	case passed && (t.status == http.StatusBadGateway || t.status == http.StatusGatewayTimeout):
		v = unknown // a gateway's word, which every client of HTTP reads like this
	case passed && strings.HasPrefix(problem, "shape"):
		// What the tracker says outside of the interface passes through as it is.
	case problem != "":
		w.load.book.violation("%s (%s %s, %s)", problem, a.method, a.path, a.id)
	case v == lost && !w.load.kind.lost && !passed && !t.streams():
		w.load.book.violation("lost: %s %s %s: no answer: %v", a.method, a.path, a.id, t.err)
	case v == unknown && a.method == "GET":
		w.load.book.violation("shape: a read with an unknown outcome: %s", a.path)
	}
	w.load.book.answered(v, t.took)
	if v == lost || t.header.Get("Retry-After") != "" {
		time.Sleep(20 * time.Millisecond) // as real clients do, and so that the figures are not all of refusals
	}
	if v != ok {
		return v, nil
	}
	return v, t.body
}

// write makes a request that changes something and keeps what came of it.
func (w *worker) write(op string, a ask) (verdict, []byte) {
	w.serial++
	a.id = fmt.Sprintf("%s-%06d", w.name, w.serial)
	a.body = strings.ReplaceAll(a.body, "MARK", a.id)
	one := &write{id: a.id, op: op}
	w.load.book.begin(one)
	v, body := w.ask(a)
	var made struct {
		ID  *int
		IDs []int
	}
	if v == ok {
		if err := json.Unmarshal(body, &made); err != nil {
			w.load.book.violation("wrong: %s %s: %v: %.100q", op, a.id, err, body)
		}
		if made.ID != nil && op == "flag_type.create" {
			made.IDs = []int{*made.ID}
		}
		if made.IDs == nil && strings.HasSuffix(op, ".create") && op != "comment.create" {
			w.load.book.violation("wrong: %s %s is acknowledged without an id: %.100q", op, a.id, body)
		}
	}
	w.load.book.end(one, v, made.IDs)
	return v, body
}

func (w *worker) createFlagType() {
	w.write("flag_type.create", ask{
		method: "POST", path: "/rest/flag_type", user: "editor",
		body: `{"name":"MARK","description":"made under load","target_type":"bug","inclusions":["4242"]}`,
	})
}

// updateFlagType changes this client's flag type, which it makes first.
func (w *worker) updateFlagType() {
	if w.flagType == nil {
		w.ownFlagType()
		return
	}
	n := w.flagType.next()
	v, _ := w.write("flag_type.update", ask{
		method: "PUT", path: "/rest/flag_type/" + strconv.Itoa(w.flagType.id), user: "editor",
		body: fmt.Sprintf(`{"description":"`+valueFormat+`"}`, n),
	})
	w.flagType.end(n, v)
	if v == refused && w.load.kind.amnesia {
		w.flagType = nil
	}
}

func (w *worker) ownFlagType() {
	v, body := w.write("flag_type.create", ask{
		method: "POST", path: "/rest/flag_type", user: "editor",
		body: fmt.Sprintf(`{"name":"MARK","description":"`+valueFormat+`","target_type":"bug","inclusions":["TestProduct"]}`, 0),
	})
	var made struct{ ID int }
	if v == ok && json.Unmarshal(body, &made) == nil {
		w.flagType = &register{id: made.ID, said: []verdict{ok}}
		w.load.mu.Lock()
		w.load.flagTypes = append(w.load.flagTypes, w.flagType)
		w.load.mu.Unlock()
	}
}

func (w *worker) createAttachment() {
	bug := bugs[w.rng.IntN(len(bugs))]
	size := 12
	if w.rng.IntN(12) == 0 {
		size = 60_000
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(w.rng.Uint32())
	}
	v, body := w.write("attachment.create", ask{
		method: "POST", path: fmt.Sprintf("/rest/bug/%d/attachment", bug), user: "dev",
		body: fmt.Sprintf(`{"ids":[%d],"data":%q,"file_name":"load.bin","summary":"`+valueFormat+`","comment":"MARK","content_type":"text/plain"}`,
			bug, base64.StdEncoding.EncodeToString(data), 0),
	})
	var made struct{ IDs []int }
	if v != ok || json.Unmarshal(body, &made) != nil || len(made.IDs) != 1 {
		return
	}
	if w.attached == nil {
		w.attached = map[int]int{}
	}
	w.attached[bug] = made.IDs[0]
	if w.attachment == nil {
		w.attachment = &register{id: made.IDs[0], said: []verdict{ok}}
	}
}

func (w *worker) updateAttachment() {
	if w.attachment == nil {
		w.createAttachment()
		return
	}
	n := w.attachment.next()
	v, _ := w.write("attachment.update", ask{
		method: "PUT", path: fmt.Sprintf("/rest/bug/attachment/%d", w.attachment.id), user: "dev",
		body: fmt.Sprintf(`{"summary":"`+valueFormat+`"}`, n),
	})
	w.attachment.end(n, v)
	if v == refused && w.load.kind.amnesia {
		w.attachment, w.attached = nil, nil
	}
}

// passWrite goes past the seven operations.
func (w *worker) passWrite() {
	w.write("comment.create", ask{method: "POST", path: "/rest/bug/7/comment", user: "dev", body: `{"comment":"MARK"}`})
}

// floors are the registers as they stand before a read begins.
func (l *load) floors() (all []*register, floors []int) {
	l.mu.Lock()
	all = slices.Clone(l.flagTypes)
	l.mu.Unlock()
	for _, r := range all {
		floors = append(floors, r.floor())
	}
	return all, floors
}

// readFlagTypes reads as one of several users and compares the response with every acknowledged change of any client.
func (w *worker) readFlagTypes() {
	all, floors := w.load.floors()
	users := []string{"editor", "dev", "granter", ""}
	paths := []string{"/rest/flag_type/TestProduct", "/rest/flag_type/TestProduct/TestComponent"}
	path := paths[w.rng.IntN(len(paths))]
	v, body := w.ask(ask{method: "GET", path: path, user: users[w.rng.IntN(len(users))]})
	if v != ok {
		return
	}
	var got struct {
		Bug, Attachment []struct {
			ID          int
			Description string
		}
	}
	if err := json.Unmarshal(body, &got); err != nil || len(got.Bug) == 0 || len(got.Attachment) == 0 {
		w.load.book.violation("wrong: %s gave %.100q", path, body)
		return
	}
	if w.load.kind.amnesia {
		return
	}
	seen := map[int]string{}
	for _, one := range got.Bug {
		seen[one.ID] = one.Description
	}
	for i, r := range all {
		value, there := seen[r.id]
		problem := "stale: " + strconv.Itoa(r.id) + " was acknowledged and is not listed"
		if there {
			problem = r.judge(value, floors[i], w.load.kind.late)
		}
		if problem != "" {
			w.load.book.violation("%s (GET %s)", problem, path)
		}
	}
}

// attachmentsOf is the answer to both attachment reads.
type attachmentsOf struct {
	Bugs        map[string][]struct{ ID int }
	Attachments map[string]struct {
		ID            int
		Summary, Data string
	}
}

// readAttachment reads this client's own attachment, or one of the fixture.
func (w *worker) readAttachment() {
	id, floor := 1, 0
	own := w.attachment != nil && w.rng.IntN(2) == 0
	if own {
		id, floor = w.attachment.id, w.attachment.floor()
	}
	path := fmt.Sprintf("/rest/bug/attachment/%d", id)
	v, body := w.ask(ask{method: "GET", path: path, user: "dev"})
	if v != ok || w.load.kind.amnesia {
		return
	}
	var got attachmentsOf
	err := json.Unmarshal(body, &got)
	found, there := got.Attachments[strconv.Itoa(id)]
	if err != nil || !there || len(got.Attachments) != 1 || found.ID != id {
		w.load.book.violation("wrong: GET %s gave %.100q", path, body)
		return
	}
	if !own {
		return
	}
	if problem := w.attachment.judge(found.Summary, floor, w.load.kind.late); problem != "" {
		w.load.book.violation("%s (GET %s)", problem, path)
	}
}

// listAttachments reads those of a bug, among which must be what this client has attached.
func (w *worker) listAttachments() {
	bug := bugs[w.rng.IntN(len(bugs))]
	path := fmt.Sprintf("/rest/bug/%d/attachment?include_fields=id", bug)
	v, body := w.ask(ask{method: "GET", path: path, user: "dev"})
	if v != ok || w.load.kind.amnesia {
		return
	}
	var got attachmentsOf
	err := json.Unmarshal(body, &got)
	list, there := got.Bugs[strconv.Itoa(bug)]
	if err != nil || !there || len(got.Bugs) != 1 {
		w.load.book.violation("wrong: GET %s gave %.100q", path, body)
		return
	}
	last := w.attached[bug]
	if last != 0 && !slices.ContainsFunc(list, func(a struct{ ID int }) bool { return a.ID == last }) {
		w.load.book.violation("missing: attachment %d was acknowledged and bug %d does not list it", last, bug)
	}
}

// readLarge reads what streams through. Its answer may break off, but it may not be wrong.
func (w *worker) readLarge() {
	v, body := w.ask(ask{method: "GET", path: "/rest/bug/attachment/4", user: "dev"})
	if v != ok {
		return
	}
	var got attachmentsOf
	if err := json.Unmarshal(body, &got); err != nil || got.Attachments["4"].Data != w.load.large {
		w.load.book.violation("wrong: the large attachment came with %d bytes", len(got.Attachments["4"].Data))
	}
}

// passRead reads something that only passes through, and stays short, so that it ends when it is sent byte by byte.
func (w *worker) passRead() {
	w.ask(ask{method: "GET", path: "/rest/bug/5/comment", user: "dev"})
}
