package migration

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// span is the time in which a tracker carried out a write.
type span struct {
	begin, end time.Time
	what       string
}

// judgeWriters checks in what the trackers have served that no attachment was written twice at a time: neither at one tracker, whoever wrote, nor by
// clients at both.
func (w *world) judgeWriters(t *testing.T) {
	t.Helper()
	spans := map[string][]span{}
	for _, d := range w.trackers {
		for _, one := range d.served(t) {
			path, _, _ := strings.Cut(one.URL, "?")
			if !strings.HasPrefix(path, "/rest/bug/attachment/") {
				continue
			}
			var body struct{ Summary string }
			_ = json.Unmarshal(one.Body, &body)
			name, _, versioned := strings.Cut(body.Summary, " version ")
			s := span{one.Begin, one.End, fmt.Sprintf("%s at %s (%s)", body.Summary, d.name, cmp.Or(one.RequestID, "a copy"))}
			spans[d.name+path] = append(spans[d.name+path], s)
			if versioned && strings.HasPrefix(one.RequestID, "client-") {
				spans[name] = append(spans[name], s)
			}
		}
	}
	for object, list := range spans {
		slices.SortFunc(list, func(a, b span) int { return a.begin.Compare(b.begin) })
		for i := 1; i < len(list); i++ {
			if list[i].begin.Before(list[i-1].end) {
				w.book.wrong("%s was written by two at a time: %s and %s", object, list[i-1].what, list[i].what)
			}
		}
	}
}

// judgeIDs checks that each object has, at each tracker, the id that belongs to the one that clients were shown.
func (w *world) judgeIDs(t *testing.T, sides [2]content) {
	t.Helper()
	in := csv.NewReader(strings.NewReader(run(t, "migrate", "ids", "export", "--config", w.file)))
	in.FieldsPerRecord = -1
	rows, err := in.ReadAll()
	must(t, err)
	pairs := [2]map[string]int{{}, {}}
	for _, row := range rows {
		for i, cell := range row[min(2, len(row)):] { // kind, client, new, old
			if id, err := strconv.Atoi(cell); err == nil {
				pairs[1-i][row[0]+" "+row[1]] = id
			}
		}
	}
	check := func(kind, name string, client int, native func(content) int) {
		born, want := 0, [2]int{client, 0}
		if client > offset {
			born, want[1] = 1, client-offset
		}
		want[1-born] = pairs[1-born][fmt.Sprint(kind, " ", client)]
		for side := range sides {
			if got := native(sides[side]); client != 0 && got != want[side] {
				w.book.wrong("clients know %s %s as %d, which is %d at tracker %d, and it is %d there", kind, name, client, want[side], side, got)
			}
		}
	}
	for name, thing := range w.book.things {
		kind := "attachment"
		if thing.bug == 0 {
			kind = "flag_type"
		}
		check(kind, name, thing.id, func(c content) int { return c.natives[name] })
	}
	for key, id := range w.book.flags {
		check("flag", key, id, func(c content) int { return c.natives["flag "+key] })
	}
}
