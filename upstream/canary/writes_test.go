package canary_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
)

// planner renders writes for real dialects, by the trackers' names.
func planner(dialects map[string]mapping.Dialect) func(context.Context, string, upstream.Call) ([]byte, error) {
	return func(_ context.Context, name string, call upstream.Call) ([]byte, error) {
		var planned bugzilla.Call
		var err error
		switch dialect := dialects[name]; {
		case call.CreateFlagType != nil:
			planned, err = bugzilla.PlanCreateFlagType(dialect, *call.CreateFlagType)
		case call.UpdateFlagTypes != nil:
			planned, err = bugzilla.PlanUpdateFlagTypes(dialect, *call.UpdateFlagTypes)
		case call.CreateAttachment != nil:
			planned, err = bugzilla.PlanCreateAttachment(dialect, *call.CreateAttachment)
		default:
			planned, err = bugzilla.PlanUpdateAttachments(dialect, *call.UpdateAttachments)
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{
			"method": planned.Method, "path": planned.Path, "query": planned.Query, "body": json.RawMessage(planned.Body.AppendJSON(nil)),
		})
	}
}

func createFlagType(t *testing.T, body string) upstream.Call {
	t.Helper()
	members, err := mapping.ParseMembers([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	request, err := mapping.DecodeFlagTypeCreate(members)
	if err != nil {
		t.Fatal(err)
	}
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

func TestWritesAreNeverMirrored(t *testing.T) {
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) {
		o.Plan = planner(map[string]mapping.Dialect{oldName: mapping.Bugzilla5(), newName: mapping.Bugzilla5()})
	}})
	w.make(updateSummary(1, "x"))
	w.make(textBlob(t, "content"))
	w.caller = w.editor()
	w.make(createFlagType(t, `{"name":"n","description":"d","inclusions":["TestProduct",{"4242":["7"]}]}`))
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q between plans of one dialect", got)
	}
	if got := w.sum(""); got.Compared != 3 || got.Same != 3 || len(got.Dropped) != 0 {
		t.Errorf("got %+v, want 3 plans that are the same", got)
	}
	if n := len(w.fresh.Requests()); n != 0 || len(w.fresh.Journal()) != 0 {
		t.Errorf("the candidate was asked %v", w.fresh.Requests())
	}
	if n := len(w.old.Journal()); n != 3 {
		t.Errorf("the old tracker carried out %d writes, want 3", n)
	}
}

// TestPlansOfDialects: what a dialect cannot say is found, another spelling is not.
func TestPlansOfDialects(t *testing.T) {
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) {
		o.Plan = planner(map[string]mapping.Dialect{oldName: mapping.Bugzilla5(), newName: mapping.BMO()})
	}})
	w.make(updateSummary(1, "x"))
	w.make(textBlob(t, "content"))
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q in plans that mean the same", got)
	}
	w.caller = w.editor()
	w.make(createFlagType(t, `{"name":"n","description":"d"}`))
	if got := w.findings(); len(got) != 1 || got[0] != "flag_type.create plan refused" {
		t.Errorf("found %q, want a refusal", got)
	}
	list, _ := w.store.Findings(t.Context())
	if len(list) != 1 || list[0].Kind != "plan" {
		t.Errorf("the findings are %+v", list)
	}
}

func TestPlansThatMeanSomethingElse(t *testing.T) {
	plans := map[string]string{}
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) {
		o.Plan = func(_ context.Context, name string, _ upstream.Call) ([]byte, error) { return []byte(plans[name]), nil }
	}})
	plans[oldName] = `{"method":"PUT","path":"/rest/flag_type/1","query":{},"body":{"ids":[1,2],"is_active":true,"cc_list":null,"sortkey":5,"inclusions":{"P":["b","a"]}}}`
	plans[newName] = `{"method":"POST","path":"/rest.cgi/flag_types/2","body":{"inclusions":[{"P":["a"]},{"P":["b"]}],"ids":["2",1],"is_active":1,"sortkey":"5"}}`
	w.make(updateSummary(1, "x"))
	if got := w.sum(""); got.Noisy != 1 || len(w.findings()) != 0 {
		t.Errorf("got %+v and %q of plans that differ in form", got, w.findings())
	}
	plans[newName] = strings.Replace(plans[newName], `"is_active":1`, `"is_active":0`, 1)
	w.make(updateSummary(1, "y"))
	if got := w.findings(); len(got) != 1 || got[0] != "attachment.update plan $.body.is_active" {
		t.Errorf("found %q, want another is_active", got)
	}
	plans[newName] = `{"path":"/rest/bug/attachment/1","body":{"ids":["2",1],"is_active":1,"sortkey":"5","inclusions":{"P":["b","a"]}}}`
	w.make(updateSummary(1, "z"))
	if got := w.findings(); len(got) != 2 || got[1] != "attachment.update plan $.resource" {
		t.Errorf("found %q, want another resource too", got)
	}
}

// following repeats the writes of the old tracker on the candidate after a while.
func (w *world) following(call upstream.Call, after time.Duration) {
	w.t.Helper()
	follower := dial(w.t, w.fresh.url, transportOptions())
	time.AfterFunc(after, func() {
		if answer := call.Make(context.Background(), follower, w.caller); answer.Err != nil {
			w.t.Errorf("following: %v", answer.Err)
		}
	})
}

// followWorld has two trackers with one clock that stands still: here each is written
// by itself, and a follower would take over the times too.
func followWorld(t *testing.T, window time.Duration, fresh tracker.Options) *world {
	t.Helper()
	now := time.Now()
	fresh.Now = func() time.Time { return now }
	return newWorld(t, worldOptions{old: tracker.Options{Now: fresh.Now}, fresh: fresh, tune: func(o *canary.Options) { o.Follows, o.ReadBack = true, window }})
}

func TestReadBackWaitsForTheCandidate(t *testing.T) {
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

func TestReadBackFindsWhatDoesNotFollow(t *testing.T) {
	w := followWorld(t, 300*time.Millisecond, tracker.Options{})
	w.make(updateSummary(1, "never there"))
	got := w.findings()
	if len(got) != 2 || got[0] != "attachment.update time $.attachments[*].last_change_time" ||
		got[1] != "attachment.update value $.attachments[*].summary" {
		t.Errorf("found %q, want the summary and the time", got)
	}
	list, _ := w.store.Findings(t.Context())
	if list[0].Kind != "readback" {
		t.Errorf("its kind is %q", list[0].Kind)
	}
	if n := len(w.fresh.Journal()); n != 0 {
		t.Errorf("the candidate carried out %d writes", n)
	}
}

func TestReadBackReadsFlagTypesOfAProduct(t *testing.T) {
	w := followWorld(t, 200*time.Millisecond, tracker.Options{})
	w.caller = w.editor()
	w.make(createFlagType(t, `{"name":"n","description":"d","inclusions":["TestProduct"]}`))
	got := w.findings()
	if len(got) != 1 || got[0] != "flag_type.create missing $.bug[id]" {
		t.Errorf("found %q, want the flag type missing", got)
	}
	w.make(createFlagType(t, `{"name":"n","description":"d"}`))
	if got := w.sum(""); got.Dropped[string(verdict.DropNothingToRead)] != 1 {
		t.Errorf("got %+v, want nothing to read of a flag type for all products", got)
	}
}

// isolatedWorld has a marker product on the candidate only, if it is proved.
func isolatedWorld(t *testing.T, proved bool, clocks ...time.Time) *world {
	t.Helper()
	refuse := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "ClosedProduct") {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = w.Write([]byte(`{"error":true,"code":106,"message":"no such product"}`))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	special := worldOptions{tune: func(o *canary.Options) { o.Isolated, o.Marker = true, "ClosedProduct" }}
	if proved {
		special.aroundOld = refuse
	}
	if len(clocks) == 2 {
		special.old.Now, special.fresh.Now = func() time.Time { return clocks[0] }, func() time.Time { return clocks[1] }
	}
	return newWorld(t, special)
}

func TestIsolatedReplayNeedsTheMarker(t *testing.T) {
	w := isolatedWorld(t, false)
	waitFor(t, func() bool { return w.old.Requests()["flag_type.get"] > 0 || w.fresh.Requests()["flag_type.get"] > 0 })
	w.make(updateSummary(1, "x"))
	w.dropped(verdict.DropNotIsolated, 1)
	if n := len(w.fresh.Journal()); n != 0 {
		t.Errorf("the candidate carried out %d writes", n)
	}
}

func TestIsolatedReplay(t *testing.T) {
	w := isolatedWorld(t, true)
	waitFor(t, func() bool { // the proof takes a moment
		w.make(updateSummary(1, "x"))
		w.settle()
		return len(w.fresh.Journal()) > 0
	})
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
	w.makeAs(updateSummary(1, "y"), upstream.Sides{Serving: newName, Compared: oldName}, dial(t, w.fresh.url, transportOptions()))
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
