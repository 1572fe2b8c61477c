package idmap_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/state"
	"portico/upstream/switchover/idmap"
)

// TestIDsThereAndBack sends ids to a tracker that responds with what it was sent: the client must see the ids that it sent, and two ids of
// clients are never one of a tracker.
func TestIDsThereAndBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store, err := state.Open(t.Context(), "sqlite::memory:")
		if err != nil {
			r.Fatal(err)
		}
		defer store.Close()
		m := idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Attachment: {Offset: 50}}}})
		ids := rapid.Int64Range(1, 100)
		for range rapid.IntRange(0, 40).Draw(r, "pairs") {
			client, shown, side := ids.Draw(r, "client"), ids.Draw(r, "shown"), idmap.OldSide
			if client < 50 {
				side, shown = idmap.NewSide, shown+50
			}
			_ = add(m, store, idmap.Attachment, client, side, shown) // it may contradict another one
		}
		for _, side := range []idmap.Side{idmap.OldSide, idmap.NewSide} {
			taken := map[string]int64{}
			for client := range int64(100) {
				in := &inner{}
				in.reply = func() *mapping.Document {
					return mapping.NewDocument(fmt.Appendf(nil, `{"attachments":[{"id":%d}]}`, in.call.UpdateAttachments.IDs[0]))
				}
				reply, err := m.Tracker(string(side), in).Do(t.Context(), caller, updating(client+1))
				if err != nil {
					if failed := refusal(t, err); failed.Reason != upstream.ReasonUnmapped {
						r.Fatal(err)
					}
					continue
				}
				native := fmt.Sprint(in.call.UpdateAttachments.IDs)
				if got, want := process.Text(t, reply.Document, nil), fmt.Sprintf(`{"attachments":[{"id":%d}]}`, client+1); got != want {
					r.Fatalf("%s: sent %s and got %s, want %s", side, native, got, want)
				}
				if other := taken[native]; other != 0 {
					r.Fatalf("%s: %d and %d are one object", side, other, client+1)
				}
				taken[native] = client + 1
			}
		}
	})
}

// oracle translates a reply by another way than the package: decoded, and member by member.
type oracle struct{ tooLarge bool }

func (o *oracle) id(value any) any {
	text, isText := value.(string)
	if number, ok := value.(json.Number); ok {
		text = string(number)
	} else if !isText {
		return value
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return value
	}
	if id += offset; id > 1<<31-1 {
		o.tooLarge = true
	}
	if isText {
		return strconv.FormatInt(id, 10)
	}
	return json.Number(strconv.FormatInt(id, 10))
}

// members translates some members of an object; a value that is no object stays as it is.
func members(value any, change map[string]func(any) any) any {
	object, ok := value.(map[string]any)
	for name := range object {
		if apply := change[name]; ok && apply != nil {
			object[name] = apply(object[name])
		}
	}
	return value
}

// within translates the items of an array or all members of an object.
func within(change func(any) any) func(any) any {
	return func(value any) any {
		switch container := value.(type) {
		case []any:
			for i := range container {
				container[i] = change(container[i])
			}
		case map[string]any:
			for name := range container {
				container[name] = change(container[name])
			}
		}
		return value
	}
}

// attachments translates the reply to a read of attachments.
func (o *oracle) attachments(value any) any {
	flag := func(value any) any { return members(value, map[string]func(any) any{"id": o.id, "type_id": o.id}) }
	attachment := func(value any) any {
		return members(value, map[string]func(any) any{"id": o.id, "bug_id": o.id, "flags": within(flag)})
	}
	keyed := func(value any) any {
		object, ok := value.(map[string]any)
		if !ok {
			return value
		}
		renamed := map[string]any{}
		for name := range object {
			text, _ := o.id(name).(string)
			renamed[text] = object[name]
		}
		return renamed
	}
	return members(value, map[string]func(any) any{
		"bugs":        func(value any) any { return keyed(within(within(attachment))(value)) },
		"attachments": func(value any) any { return keyed(within(attachment)(value)) },
	})
}

func decode(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"bugs":{"1":[{"id":905,"bug_id":7,"data":"aGVsbG8=","flags":[{"id":4,"type_id":"3","status":"?"}]}]},"attachments":{"5":{"id":5}}}`,
		`{"bugs":{},"attachments":{"\u0035":{"id":"5","flags":{"a":{"id":1}}},"x":{"id":1.0},"07":[{"id":-1}]}}`,
		`{"bugs":[[{"id":1}],{"id":2}],"attachments":[{"id":2147483647},3,null],"id":4}`,
		`{"bugs" : {"2":[ ]} , "attachments":{ "1":{"data":"` + strings.Repeat("QUJD", 2000) + `","id":0,"bug_id":null,"x":{"id":[1]}}}}`,
		`{"bugs":{"9":{"9":{"id":1e3}}},"attachments":{"00":{"id":00}}}`,
		`{"attachments":[{"id":` + strings.Repeat("7", 300) + `}]}`,
	} {
		f.Add(seed, 7)
	}
	m := idmap.New(idmap.Options{
		Old: "old", New: "new",
		Store:    openStore(f),
		Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Bug: {Mode: idmap.Offset}}},
		Split:    jsonblob.SplitOptions{Dir: f.TempDir(), Limits: jsonblob.Limits{BlobMemory: 1 << 10}},
	})
	f.Fuzz(func(t *testing.T, reply string, cut int) {
		if members, err := mapping.ParseMembers([]byte(reply)); err != nil || !json.Valid([]byte(reply)) || members == nil || hasEqualIDs(decode(t, reply)) {
			t.Skip()
		}
		o := &oracle{}
		want := o.attachments(decode(t, reply))
		for _, form := range []func() *mapping.Document{text(reply), stream(reply)} {
			got, err := m.Tracker("new", &inner{reply: form}).Do(t.Context(), caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{}})
			if _, isLimit := errors.AsType[*jsonblob.LimitError](err); isLimit {
				continue // no tracker sends a number of hundreds of digits
			}
			if o.tooLarge || err != nil {
				if o.tooLarge != (err != nil) {
					t.Fatalf("%s: %v, want a refusal: %v", reply, err, o.tooLarge)
				}
				continue
			}
			length := got.Len()
			after := process.Text(t, got.Document, nil)
			if length >= 0 && int(length) != len(after) {
				t.Errorf("%s: the length is %d, but there are %d bytes", reply, length, len(after))
			}
			if have := decode(t, after); !reflect.DeepEqual(have, want) {
				t.Errorf("%s\nbecame %s\nwant   %v", reply, after, want)
			}
		}
	})
}

// hasEqualIDs reports whether an object has two names that are one id, such as 7 and 07, or that a decoder and a copier tell apart.
func hasEqualIDs(value any) bool {
	found := false
	var visit func(any) any
	visit = func(value any) any {
		if object, ok := value.(map[string]any); ok {
			ids := map[int64]bool{}
			for name := range object {
				id, err := strconv.ParseInt(name, 10, 64)
				found = found || err == nil && ids[id] || strings.Contains(name, "\ufffd")
				ids[id] = ids[id] || err == nil
			}
		}
		return within(visit)(value)
	}
	visit(value)
	return found
}

// TestContentStaysOutOfTheHeap translates a reply with much content.
func TestContentStaysOutOfTheHeap(t *testing.T) {
	const pieces, piece = 1 << 10, 32 << 10
	one := bytes.Repeat([]byte("QUJD"), piece/4)
	m := idmap.New(idmap.Options{
		Old: "old", New: "new",
		Store: openStore(t), Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Flag: {}}},
		Split: jsonblob.SplitOptions{Dir: t.TempDir(), Limits: jsonblob.AnswerLimits(256 << 10)},
	})
	in := &inner{reply: func() *mapping.Document {
		content := make([]io.Reader, pieces)
		for i := range content {
			content[i] = bytes.NewReader(one)
		}
		rest := io.MultiReader(append(content, strings.NewReader(`","id":7}},"bugs":{}}`))...)
		return mapping.NewStream([]byte(`{"attachments":{"7":{"data":"`), io.NopCloser(rest), -1)
	}}
	tr := m.Tracker("new", in)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reply, err := tr.Do(t.Context(), caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{}})
	must(t, err)
	out := &ends{}
	n, err := reply.WriteTo(out)
	runtime.ReadMemStats(&after)
	if err := reply.Close(); err != nil {
		t.Error(err)
	}
	if want := int64(pieces*piece + len(`{"attachments":{"1000000007":{"data":"","id":1000000007}},"bugs":{}}`)); err != nil || n != want || n != reply.Len() {
		t.Errorf("%d bytes came (%v), want %d", n, err, want)
	}
	if !strings.HasPrefix(string(out.first), `{"attachments":{"1000000007":{"data":"QUJD`) || !strings.HasSuffix(string(out.last), `","id":1000000007}},"bugs":{}}`) {
		t.Errorf("it begins with %s and ends with %s", out.first, out.last)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes went to the heap for %d bytes of content", used, pieces*piece)
	}
}

// ends keeps the beginning and the end of what is written.
type ends struct{ first, last []byte }

func (e *ends) Write(p []byte) (int, error) {
	if len(e.first) < 64 {
		e.first = append(e.first, p[:min(len(p), 64)]...)
	}
	e.last = append(e.last, p[max(0, len(p)-64):]...)
	e.last = e.last[max(0, len(e.last)-64):]
	return len(p), nil
}

// BenchmarkMillionPairs translates replies with 100 attachments each of a tracker that has a million paired ones.
func BenchmarkMillionPairs(b *testing.B) {
	const count, each, warm = 1_000_000, 100, 100_000
	store, err := state.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "ids.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	began := time.Now()
	natives := rand.Perm(count)
	for from := 0; from < count; from += 10_000 {
		var pairs []state.IDPair
		for i := from; i < from+10_000; i++ {
			pairs = append(pairs, state.IDPair{Kind: "attachment", Client: int64(i + 1), Side: "new", Native: int64(natives[i] + 1)})
		}
		if err := store.AddIDs(b.Context(), pairs); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%.0f pairs a second were added", count/time.Since(began).Seconds())
	m := idmap.New(idmap.Options{Old: "old", New: "new", Store: store, Settings: idmap.Settings{IDs: map[idmap.Kind]idmap.Rule{idmap.Flag: {}}}})
	for name, among := range map[string]int{"warm": warm, "any of them": count} {
		b.Run(name, func(b *testing.B) {
			in := &inner{reply: text(`{"attachments":[]}`)}
			tr := m.Tracker("new", in)
			ids := make([]int64, each)
			draw := func() {
				for i := range ids {
					ids[i] = 1 + rand.Int64N(int64(among))
				}
			}
			for range 10 * among / each { // so that most of them were used before
				if draw(); name == "warm" {
					_, _ = tr.Do(b.Context(), caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids}})
				}
			}
			for b.Loop() {
				draw()
				if _, err := tr.Do(b.Context(), caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/each, "ns/id")
		})
	}
}

// BenchmarkRead reads the attachments of a bug at a tracker that costs nothing, and so by ids that were used before.
func BenchmarkRead(b *testing.B) {
	m := newMap(b, idmap.Names{})
	pair(b, m, idmap.Bug, 7, idmap.NewSide, 907)
	in := &inner{reply: text(`{"bugs":{"907":[{"id":5,"bug_id":907,"data":"` + strings.Repeat("QUJD", 1000) + `","size":3000,"creation_time":"2026-11-20T10:00:00Z","last_change_time":"2026-11-20T10:00:00Z","file_name":"f.patch","summary":"a summary","content_type":"text/plain","is_private":0,"is_obsolete":0,"is_patch":1,"creator":"ann@example.com","flags":[{"id":904,"type_id":903,"name":"review","setter":"ann@example.com","status":"?"}]}]},"attachments":{}}`)}
	request := mapping.AttachmentsRequest{Bugs: []string{"7"}}
	b.Run("of the tracker", func(b *testing.B) {
		for b.Loop() {
			reply, err := in.Do(b.Context(), caller, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &request})
			if err != nil || reply.Close() != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("translated", func(b *testing.B) {
		tr := m.Tracker("new", in)
		for b.Loop() {
			reply, err := tr.Do(b.Context(), caller, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &request})
			if err != nil || reply.Close() != nil {
				b.Fatal(err)
			}
		}
	})
}
