package migration

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/test/process"
	"portico/upstream/state"
)

// content is what a tracker has: each object of the clients by its name, in words that do not depend on ids, and how often each comment is there.
type content struct {
	objects  map[string]string
	versions map[string]int
	flags    map[string]bool
	natives  map[string]int
	said     map[string]int
	faults   []string
}

// otherwise are the members that a copy may have otherwise than what it is a copy of: ids, whose it is, and times.
var otherwise = []string{
	"id", "bug_id", "type_id", "creator", "attacher", "setter", "creation_time", "last_change_time", "creation_date", "modification_date",
}

// stripped is a part of a response without what may be otherwise, with lists in one order.
func stripped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if v[name] = stripped(v[name]); slices.Contains(otherwise, name) {
				delete(v, name)
			}
		}
		if data, ok := v["data"].(string); ok {
			v["data"] = fmt.Sprintf("%x", sha256.Sum256([]byte(data)))[:16]
		}
	case []any:
		for i := range v {
			v[i] = stripped(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(inWords(a), inWords(b)) })
	}
	return v
}

// inWords is a value as JSON with its members in order.
func inWords(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// add notes an object, of which a tracker says all that v has.
func (c *content) add(side int, name string, v any, version, id int) {
	if c.objects[name] != "" {
		c.faults = append(c.faults, fmt.Sprintf("tracker %d has %s twice", side, name))
	}
	c.objects[name], c.versions[name], c.natives[name] = inWords(stripped(v)), version, id
}

// read reads what a tracker has, from the tracker itself.
func (w *world) read(t *testing.T, side int) content {
	t.Helper()
	base := w.trackers[side].base
	c := content{map[string]string{}, map[string]int{}, map[string]bool{}, map[string]int{}, map[string]int{}, nil}
	for i, bug := range w.natives[side] {
		var reply struct{ Bugs map[string][]shownAttachment }
		var whole struct{ Bugs map[string][]any }
		direct(t, fmt.Sprintf("%s/rest/bug/%d/attachment", base, bug), &reply, &whole)
		for n, one := range reply.Bugs[fmt.Sprint(bug)] {
			for _, flag := range one.Flags {
				key := one.FileName + " " + flag.Name
				if c.flags[key] && one.FileName != "f" {
					c.faults = append(c.faults, fmt.Sprintf("tracker %d has flag %s twice", side, key))
				}
				c.flags[key], c.natives["flag "+key] = true, flag.ID
			}
			name := one.FileName
			if name == "f" {
				name = fmt.Sprint("shared of bug ", w.bugs[i])
			}
			c.add(side, name, whole.Bugs[fmt.Sprint(bug)][n], versionOf(one.Summary), one.ID)
		}
		var comments struct {
			Bugs map[string]struct{ Comments []struct{ Text string } }
		}
		direct(t, fmt.Sprintf("%s/rest/bug/%d/comment", base, bug), &comments)
		for _, one := range comments.Bugs[fmt.Sprint(bug)].Comments {
			if said := saidIn(one.Text); said != "" {
				c.said[said]++
			}
		}
	}
	type flagType struct {
		ID                int
		Name, Description string
	}
	var types map[string][]flagType
	var whole map[string][]any
	direct(t, base+"/rest/flag_type/WebShop", &types, &whole)
	for target, list := range types {
		for n, one := range list {
			name := one.Name
			if target != "attachment" {
				name = "flag type of bugs " + name
			}
			if !strings.HasPrefix(one.Name, "extra") {
				c.add(side, name, whole[target][n], versionOf(one.Description), one.ID)
			}
		}
	}
	return c
}

// saidIn is the comment of a client in the text that a tracker shows, which begins with what was done and may end with whose copy it is.
func saidIn(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "made ") || strings.HasPrefix(line, "said ") {
			return line
		}
	}
	return ""
}

// direct reads from a tracker.
func direct(t *testing.T, address string, into ...any) {
	t.Helper()
	var got response
	process.Eventually(t, address+" responds", func() (ok bool) {
		var err error
		got, err = request(t.Context(), http.DefaultClient, http.MethodGet, asAdmin(address), nil)
		return err == nil
	})
	if got.status != 200 {
		t.Fatalf("%s: %d %s", address, got.status, got.text)
	}
	for _, one := range into {
		got.into(one)
	}
}

// settle waits until all that was begun before now is copied, or left out by an operator.
func (w *world) settle(t *testing.T) {
	t.Helper()
	now := time.Now()
	var left []state.JournalEntry
	w.await(t, func() string { return fmt.Sprintf("everything is copied, except %+v", left) }, func() bool {
		found, ok := w.entries(t)
		left = slices.DeleteFunc(found.Entries, func(e state.JournalEntry) bool { return e.Begun.After(now) })
		w.operate(t, left)
		return ok && len(left) == 0
	})
}

// operate does what an operator does about parked entries: look at both trackers, and have an entry copied that only the first one has.
func (w *world) operate(t *testing.T, entries []state.JournalEntry) {
	t.Helper()
	entries = slices.DeleteFunc(slices.Clone(entries), func(e state.JournalEntry) bool { return e.Status != state.JournalParked })
	if len(entries) == 0 {
		return
	}
	sides := map[string]content{"before": w.read(t, 0), "after": w.read(t, 1)}
	for _, e := range entries {
		if e.Reason == "" {
			t.Errorf("entry %d is parked without a reason", e.Seq)
		}
		sent, ok := w.book.find(e.Caller, e.Begun)
		if !ok {
			continue // the client still waits for the response
		}
		verb := "skip"
		if sent.in(sides[e.Target]) && !sent.in(sides[e.Receiver]) {
			verb = "retry"
		} else {
			w.skipped++
		}
		t.Logf("%s entry %d, %s of %s by %s: %s", verb, e.Seq, e.Operation, e.Lane, e.Caller, e.Reason)
		_, _, _ = process.Run(t, "migrate", "journal", verb, fmt.Sprint(e.Seq), "--actor", "a test", "--reason", "a test", "--config", w.file) // it is tried again
	}
}

// judge holds what clients were told against what the trackers have.
func (w *world) judge(t *testing.T) {
	t.Helper()
	w.settle(t)
	sides := [2]content{w.read(t, 0), w.read(t, 1)}
	w.judgeWriters(t)
	w.judgeIDs(t, sides)
	book := &w.book
	book.faults = append(book.faults, append(sides[0].faults, sides[1].faults...)...)
	for name, thing := range book.things {
		book.judge(thing, sides)
		delete(sides[0].objects, name)
		delete(sides[1].objects, name)
	}
	if !maps.Equal(sides[0].objects, sides[1].objects) {
		book.wrong("the trackers differ in what they share: %v and %v", sides[0].objects, sides[1].objects)
	}
	for said, sure := range book.sharedSaid {
		if strings.HasPrefix(said, "said of all") {
			book.judgeComment(said, sure, sides)
		}
	}
	for n, fault := range book.faults {
		if n < 20 {
			t.Error(fault)
		}
	}
	t.Logf("%d faults, %d objects; %v", len(book.faults), len(book.things), book.counts)
}

// differences lists what two trackers do not have in common.
func differences(old, next content) string {
	var all []string
	for name := range old.objects {
		if old.objects[name] != next.objects[name] {
			all = append(all, fmt.Sprintf("%s is %q and %q", name, old.objects[name], next.objects[name]))
		}
	}
	for name, text := range next.objects {
		if _, there := old.objects[name]; !there {
			all = append(all, fmt.Sprintf("only the new tracker has %s %q", name, text))
		}
	}
	for said, times := range old.said {
		if next.said[said] != times {
			all = append(all, fmt.Sprintf("%q is %d and %d times there", said, times, next.said[said]))
		}
	}
	return strings.Join(all, "; ")
}

// judge holds one object against both trackers.
func (b *book) judge(t *thing, sides [2]content) {
	for side, c := range sides {
		text, there := c.objects[t.name]
		if t.made && !there {
			b.wrong("%s (id %d) was acknowledged, and tracker %d does not have it", t.name, t.id, side)
		}
		if version := c.versions[t.name]; there && (version < t.sure || version > t.tried) {
			b.wrong("%s: tracker %d has %q; version %d was acknowledged, and %d the last one", t.name, side, text, t.sure, t.tried)
		}
		for kind, sure := range t.flags {
			if sure && !c.flags[t.name+" "+kind] {
				b.wrong("%s: flag %s was acknowledged, and tracker %d does not have it", t.name, kind, side)
			}
		}
	}
	if sides[0].objects[t.name] != sides[1].objects[t.name] {
		b.wrong("%s is %q and %q", t.name, sides[0].objects[t.name], sides[1].objects[t.name])
	}
	for said, sure := range t.said {
		b.judgeComment(said, sure, sides)
	}
}

func (b *book) judgeComment(said string, sure bool, sides [2]content) {
	old, next := sides[0].said[said], sides[1].said[said]
	if old != next || old > 1 || sure && old != 1 {
		b.wrong("%q (acknowledged: %v) is %d times at the old tracker and %d times at the new one", said, sure, old, next)
	}
}
