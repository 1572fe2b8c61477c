package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

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
