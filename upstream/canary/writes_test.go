package canary_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
	"portico/upstream/transport"
)

func createFlagType(t *testing.T, body string) upstream.Call {
	t.Helper()
	members, err := mapping.ParseMembers([]byte(body))
	must(t, err)
	request, err := mapping.DecodeFlagTypeCreate(members)
	must(t, err)
	request.SetDefaults()
	return upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &request}
}

func textBlob(t *testing.T, content string) upstream.Call {
	t.Helper()
	name, summary, kind := "a.txt", "words", "text/plain"
	return upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{
		Bugs: []string{"1"}, Data: jsonblob.BlobFromRaw([]byte(content)), FileName: &name, Summary: &summary, ContentType: &kind,
	}}
}

// editor may create flag types.
func (w *world) editor() upstream.Caller {
	return upstream.Caller{Credentials: upstream.Credentials{APIKey: tracker.Keys(tracker.SeedFixture)["editor@example.com"]}}
}

// planned gives the trackers the plans, by their names; a tracker without one refuses.
func planned(plans map[string]string) func(*canary.Options) {
	return func(o *canary.Options) {
		for name := range o.Trackers {
			plan(o, name, func() ([]byte, error) {
				if plans[name] == "" {
					return nil, &mapping.Error{Code: 100, Reason: mapping.ReasonInexpressive}
				}
				return []byte(plans[name]), nil
			})
		}
	}
}

// TestPlansAreComparedAndNotSent: what a dialect cannot say is found, another spelling is not.
func TestPlansAreComparedAndNotSent(t *testing.T) {
	t.Parallel()
	plans := map[string]string{oldName: `{"path":"/rest/bug/attachment/1","body":{"ids":[1,2],"is_private":true}}`}
	w := newWorld(t, worldOptions{tune: planned(plans)})
	for _, step := range []struct {
		other, found string
		noisy        int64
	}{
		{plans[oldName], "", 0},
		{`{"path":"/rest.cgi/bug/attachment/1","body":{"is_private":1,"ids":["2",1]}}`, "", 1},
		{`{"path":"/rest/bug/attachment/1","body":{"ids":[1,2],"is_private":false}}`, "attachment.update plan $.body.is_private", 1},
		{"", "attachment.update plan $.body.is_private,attachment.update plan refused", 1},
	} {
		plans[newName] = step.other
		w.make(updateSummary(1, "x"))
		if got := w.findings(); strings.Join(got, ",") != step.found || w.sum("").Noisy != step.noisy {
			t.Errorf("%s: found %q and %+v", step.other, got, w.sum(""))
		}
	}
	list, _ := w.store.Findings(t.Context())
	isRefused := func(f state.Finding) bool {
		return f.Path == compare.PathRefused && strings.Contains(f.Note, "for one of the trackers only")
	}
	if !slices.ContainsFunc(list, isRefused) {
		t.Errorf("no note says that there is no form: %+v", list)
	}
	if n := len(w.fresh.Requests()); n != 0 || len(w.fresh.Journal()) != 0 || len(w.old.Journal()) != 4 {
		t.Errorf("the candidate was asked %v, the old tracker carried out %d writes", w.fresh.Requests(), len(w.old.Journal()))
	}
}

// following repeats the writes of the old tracker on the candidate after a while.
func (w *world) following(call upstream.Call, after time.Duration) {
	w.t.Helper()
	follower := dial(w.t, w.fresh.url, transport.Options{})
	time.AfterFunc(after, func() {
		if answer := call.Make(context.Background(), follower, w.caller); answer.Err != nil {
			w.t.Errorf("following: %v", answer.Err)
		}
	})
}

// followWorld has two trackers with one clock that stands still: here each is written
// by itself, and a follower would take over the times too.
func followWorld(t *testing.T, window time.Duration, fresh tracker.Options, tunes ...func(*canary.Options)) *world {
	t.Helper()
	now := time.Now()
	fresh.Now = func() time.Time { return now }
	return newWorld(t, worldOptions{old: tracker.Options{Now: fresh.Now}, fresh: fresh, tune: func(o *canary.Options) {
		o.Follows, o.ReadBack = true, window
		for _, tune := range tunes {
			tune(o)
		}
	}})
}

func TestReadBackWaitsForTheCandidate(t *testing.T) {
	t.Parallel()
	w := followWorld(t, 20*time.Second, tracker.Options{})
	update := updateSummary(1, "followed")
	w.following(update, 250*time.Millisecond)
	w.make(update)
	create := textBlob(t, "content")
	w.following(create, 400*time.Millisecond)
	w.make(create)
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q although the candidate followed", got)
	}
	if got := w.sum(""); got.Same != 2 || len(got.Dropped) != 0 {
		t.Errorf("got %+v, want both the same", got)
	}
}

func TestReadBackReadsFlagTypesOfAProduct(t *testing.T) {
	t.Parallel()
	other := `{"name":"n"}`
	w := followWorld(t, 200*time.Millisecond, tracker.Options{}, func(o *canary.Options) {
		plan(o, oldName, func() ([]byte, error) { return []byte(`{"path":"/flag_type","body":{"name":"n"}}`), nil })
		plan(o, newName, func() ([]byte, error) { return []byte(`{"path":"/flag_type","body":` + other + `}`), nil })
	})
	w.caller = w.editor()
	w.make(createFlagType(t, `{"name":"n","description":"d","inclusions":["TestProduct"]}`))
	got := w.findings()
	if len(got) != 1 || got[0] != "flag_type.create missing $.bug[id]" {
		t.Errorf("found %q, want the flag type missing", got)
	}
	before := w.fresh.Requests()
	w.make(createFlagType(t, `{"name":"n","description":"d"}`)) // for all products, so that only the plans can be compared
	if got := w.sum(""); got.Compared != 2 || got.Same != 1 || len(got.Dropped) != 0 || !maps.Equal(w.fresh.Requests(), before) {
		t.Errorf("got %+v, want nothing to read of a flag type for all products", got)
	}
	other = `{"name":"another"}`
	w.make(createFlagType(t, `{"name":"m","description":"d"}`))
	if got := w.sum(""); got.Compared != 3 || got.Confirmed != 2 || !slices.Contains(w.findings(), "flag_type.create plan $.body.name") {
		t.Errorf("got %+v and %q, want the plans to count", got, w.findings())
	}
}

func TestIsolatedReplayNeedsTheMarker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.Isolated, o.Marker = true, "ClosedProduct" }})
	process.Eventually(t, "the comparison is that far", func() bool { return w.old.Requests()["flag_type.get"] > 0 || w.fresh.Requests()["flag_type.get"] > 0 })
	w.make(updateSummary(1, "x"))
	w.dropped(verdict.DropNotIsolated, 1)
	if n := len(w.fresh.Journal()); n != 0 {
		t.Errorf("the candidate carried out %d writes", n)
	}
}

func TestIsolatedReplay(t *testing.T) {
	t.Parallel()
	w := replayWorld(t, &writeLog{}, nil)
	before := len(w.fresh.Journal())
	create := textBlob(t, "the content")
	w.make(create)
	_ = create.CreateAttachment.Data.Close() // as the client's request does
	w.settle()
	if n := len(w.fresh.Journal()) - before; n != 1 {
		t.Errorf("the candidate carried out %d writes for one", n)
	}
	large := textBlob(t, strings.Repeat("x", 300_000))
	w.make(large)
	got := w.sum(mapping.OpCreateAttachment)
	if got.Compared != 1 || got.Dropped[string(verdict.DropPayload)] != 1 {
		t.Errorf("got %+v, want one compared and one too large", got)
	}
	// Never the other way round: the old tracker is in use.
	writes, own := len(w.old.Journal()), len(w.fresh.Journal())
	w.makeAs(updateSummary(1, "y"), upstream.Sides{Serving: newName, Compared: oldName}, dial(t, w.fresh.url, transport.Options{}))
	if w.settle(); len(w.old.Journal()) != writes {
		t.Error("a write to the candidate was made on the old tracker too")
	}
	if n := len(w.fresh.Journal()) - own; n != 1 {
		t.Errorf("the candidate carried out %d writes for one that was its own", n)
	}
	if list := w.findings(); strings.Contains(strings.Join(list, "\n"), "attachment.create") {
		t.Errorf("found %q", list)
	}
}
