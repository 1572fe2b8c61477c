package canary_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
)

// writeLog stands before a candidate that has the marker product, and notes the
// writes that come in.
type writeLog struct {
	mu        sync.Mutex
	summaries []string
	running   int
	overlap   bool
	together  chan struct{} // closed when two writes run at the same time
	hold      chan struct{} // writes wait until it is closed, or not at all when it is nil
}

func (l *writeLog) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		_, rest, _ := strings.Cut(string(body), `"summary":"`)
		summary, _, _ := strings.Cut(rest, `"`)
		l.begin(summary)
		next.ServeHTTP(w, r)
		l.mu.Lock()
		l.running--
		l.mu.Unlock()
	})
}

// begin gives a second write the time to come in beside the first.
func (l *writeLog) begin(summary string) {
	l.mu.Lock()
	l.summaries = append(l.summaries, summary)
	l.running++
	if l.running == 2 && !l.overlap {
		l.overlap = true
		close(l.together)
	}
	l.mu.Unlock()
	if l.hold != nil {
		<-l.hold
		return
	}
	select {
	case <-l.together:
	case <-time.After(50 * time.Millisecond):
	}
}

func (l *writeLog) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.summaries)
}

// replayWorld has a candidate that is proved to be isolated.
func replayWorld(t *testing.T, log *writeLog, tune func(*canary.Options), clocks ...time.Time) *world {
	t.Helper()
	log.together = make(chan struct{})
	proved := make(chan struct{})
	special := worldOptions{
		around: log.around,
		aroundOld: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "ClosedProduct") {
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = w.Write([]byte(`{"error":true,"code":106,"message":"no such product"}`))
					return
				}
				next.ServeHTTP(w, r)
			})
		},
		tune: func(o *canary.Options) {
			o.Isolated, o.Marker = true, "ClosedProduct"
			o.Logger = slog.New(&proofHandler{Handler: slog.DiscardHandler, proved: proved})
			if tune != nil {
				tune(o)
			}
		},
	}
	if len(clocks) == 2 {
		special.old.Now, special.fresh.Now = func() time.Time { return clocks[0] }, func() time.Time { return clocks[1] }
	}
	w := newWorld(t, special)
	select {
	case <-proved:
	case <-time.After(time.Minute):
		t.Fatal("the candidate was not proved to be isolated")
	}
	return w
}

// proofHandler waits for the word that the candidate is proved to be isolated.
type proofHandler struct {
	slog.Handler
	proved chan struct{}
	once   sync.Once
}

// Enabled implements slog.Handler.
func (h *proofHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *proofHandler) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "proved" && a.Value.Bool() {
			h.once.Do(func() { close(h.proved) })
		}
		return true
	})
	return nil
}

// TestReplaysKeepTheirOrder: several writes of one object leave the candidate in the
// state in which they left the old tracker, however few calls are sampled.
func TestReplaysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var log writeLog
	w := replayWorld(t, &log, func(o *canary.Options) { o.PerSecond, o.Sampling.Default = 1, 0.01 })
	const writes = 12
	for i := range writes {
		w.make(updateSummary(1, "summary "+strconv.Itoa(i)))
	}
	w.settle()
	got := log.seen()
	if len(got) != writes || log.overlap {
		t.Fatalf("%d of %d writes came to the candidate, some at once: %v", len(got), writes, log.overlap)
	}
	for i, summary := range got {
		if summary != "summary "+strconv.Itoa(i) {
			t.Errorf("write %d was %q", i, summary)
		}
	}
	if got := w.sum(mapping.OpUpdateAttachments); got.Compared != writes || len(got.Dropped) != 0 {
		t.Errorf("got %+v, want every write compared", got)
	}
}

// TestReplayWaitsForTheOneBefore, whose client has not read its answer yet.
func TestReplayWaitsForTheOneBefore(t *testing.T) {
	t.Parallel()
	var log writeLog
	w := replayWorld(t, &log, nil)
	first := updateSummary(1, "first")
	answer := first.Make(t.Context(), w.client, w.caller)
	unread := w.canary.Answered(t.Context(), w.caller, first, sides, answer)
	w.make(updateSummary(1, "second"))
	w.make(flagTypes("TestProduct"))
	process.Eventually(t, "the comparison is that far", func() bool { return w.canary.Load().Pending == 2 }) // the read is over, so the lane was awake
	if got := log.seen(); len(got) != 0 {
		t.Errorf("%q came before the first write", got)
	}
	if _, err := unread.WriteTo(io.Discard); err != nil {
		t.Error(err)
	}
	_ = unread.Close() // it has been read
	w.settle()
	if got := log.seen(); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("the candidate got %q", got)
	}
}

// TestClosingEndsReplays that wait for one which is not even read.
func TestClosingEndsReplays(t *testing.T) {
	t.Parallel()
	var log writeLog
	w := replayWorld(t, &log, nil)
	first := updateSummary(1, "first")
	unread := w.canary.Answered(t.Context(), w.caller, first, sides, first.Make(t.Context(), w.client, w.caller))
	w.make(updateSummary(1, "second"))
	if err := w.canary.Close(); err != nil {
		t.Error(err)
	}
	_ = unread.Close() // without being read
	if load := w.canary.Load(); load != (canary.Load{}) || w.canary.Held() != 0 {
		t.Errorf("got %+v, want nothing held", load)
	}
	w.dropped(verdict.DropClosed, 2)
}

// TestDroppedReplayIsTold: what is found after it may come of it.
func TestDroppedReplayIsTold(t *testing.T) {
	t.Parallel()
	log := writeLog{hold: make(chan struct{})}
	release := sync.OnceFunc(func() { close(log.hold) })
	w := replayWorld(t, &log, func(o *canary.Options) { o.Queue = 2 })
	t.Cleanup(release) // before the trackers end, which wait for their requests
	for i := range 4 { // one of which is being repeated
		w.make(updateSummary(1, "summary "+strconv.Itoa(i)))
		process.Eventually(t, "the comparison is that far", func() bool { return len(log.seen()) == 1 })
	}
	// A response is queued by a goroutine of its own: one runs, two wait, and one has been dropped.
	process.Eventually(t, "the comparison is that far", func() bool { load := w.canary.Load(); return load.Queued == 2 && load.Pending == 3 })
	release()
	w.settle()
	w.make(updateSummary(1, "another"))
	got := w.sum(mapping.OpUpdateAttachments)
	if got.Compared != 4 || got.Dropped[string(verdict.DropQueueFull)] != 1 {
		t.Errorf("got %+v, want 4 compared and one dropped", got)
	}
	list, err := w.store.Findings(t.Context())
	if err != nil || len(list) == 0 {
		t.Fatalf("found %v (%v), want what the missing write makes differ", list, err)
	}
	for _, f := range list {
		if !strings.Contains(f.Note, "did not get every write") {
			t.Errorf("%s %s: the note is %q", f.Class, f.Path, f.Note)
		}
	}
}

// TestWriteIsOneComparison, though its plans and its result are compared.
func TestWriteIsOneComparison(t *testing.T) {
	t.Parallel()
	now := time.Now()
	frozen := tracker.Options{Now: func() time.Time { return now }}
	notFollowed := []string{"readback $.attachments[*].last_change_time", "readback $.attachments[*].summary"}
	for name, c := range map[string]struct {
		plans     map[string]string
		confirmed int64
		kinds     []string
		unread    bool
	}{
		"the same plan":               {map[string]string{oldName: `{"path":"/bug/attachment/1"}`, newName: `{"path":"/bug/attachment/1"}`}, 3, notFollowed, false},
		"another plan":                {map[string]string{oldName: `{"path":"/bug/attachment/1"}`, newName: `{"path":"/bug/attachment/2"}`}, 3, append([]string{"plan $.resource"}, notFollowed...), false},
		"another plan, and no result": {map[string]string{oldName: `{"path":"/bug/attachment/1"}`, newName: `{"path":"/bug/attachment/2"}`}, 3, []string{"plan $.resource"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{old: frozen, fresh: frozen, aroundOld: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if c.unread && r.Method == http.MethodGet {
						w.WriteHeader(http.StatusBadGateway)
						return
					}
					next.ServeHTTP(w, r)
				})
			}, tune: func(o *canary.Options) {
				o.Follows, o.ReadBack = true, 100*time.Millisecond
				for name := range o.Trackers {
					plan(o, name, func() ([]byte, error) { return []byte(c.plans[name]), nil })
				}
			}})
			for i := range 3 {
				w.make(updateSummary(1, "never there "+strconv.Itoa(i)))
				w.settle()
			}
			if got := w.sum(""); got.Compared != 3 || got.Confirmed != c.confirmed || len(got.Dropped) != 0 {
				t.Errorf("got %+v, want 3 compared and %d confirmed", got, c.confirmed)
			}
			var kinds []string
			list, _ := w.store.Findings(t.Context())
			for _, f := range list {
				kinds = append(kinds, f.Kind+" "+f.Path)
			}
			if slices.Sort(kinds); !slices.Equal(kinds, c.kinds) {
				t.Errorf("found %q, want %q", kinds, c.kinds)
			}
			if n := len(w.fresh.Journal()); n != 0 {
				t.Errorf("the candidate carried out %d writes", n)
			}
		})
	}
}

// TestResetEndsWhatIsToldOfWrites: once both trackers hold the same again, neither a missing write nor an unknown order
// explains what differs.
func TestResetEndsWhatIsToldOfWrites(t *testing.T) {
	t.Parallel()
	w := replayWorld(t, &writeLog{}, nil)
	refused := upstream.Response{Err: &mapping.Error{Code: 1, Status: 400, Message: "m"}}
	write := func(answer upstream.Response) {
		w.canary.Answered(t.Context(), w.caller, updateSummary(1, "a"), sides, answer)
		w.settle()
	}
	notes := func() (all string) {
		list, err := w.store.Findings(t.Context())
		if err != nil || len(list) == 0 {
			t.Fatalf("found %v (%v), want what was refused", list, err)
		}
		for _, f := range list {
			all += f.Note
		}
		return all
	}
	write(refused)
	lost, late := refused, refused
	lost.Err, late.Took = &mapping.Error{Status: 504, Reason: mapping.ReasonTimeout, Unknown: true}, time.Minute
	write(lost)
	write(late)
	if told := notes(); !strings.Contains(told, "every write") || !strings.Contains(told, "at the same time") {
		t.Errorf("the notes are %q", told)
	}
	must(t, w.canary.Reset(t.Context(), "ada", "both hold the same"))
	write(refused)
	if told := notes(); strings.Contains(told, "write") {
		t.Errorf("after a reset the notes are %q", told)
	}
}

// TestReplayedWritesHappenLater: an isolated candidate has written what the reference has, a moment later.
func TestReplayedWritesHappenLater(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for later, want := range map[time.Duration][]string{
		time.Second: nil,
		time.Hour: {
			"attachment.get time $.attachments[*].last_change_time", "attachment.update time $.attachments[id].last_change_time",
		},
	} {
		w := replayWorld(t, &writeLog{}, nil, noon, noon.Add(later))
		w.make(updateSummary(3, "y"))
		w.settle()
		w.make(attachment("3"))
		if found := w.findings(); !slices.Equal(found, want) {
			t.Errorf("%v later found %q, want %q", later, found, want)
		}
	}
}

// lacking is a candidate of which the ids that clients name are not known.
type lacking struct{ upstream.Tracker }

// Do implements upstream.Tracker.
func (l lacking) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	if call.Operation.IsWrite() {
		return mapping.Reply{}, &mapping.Error{Code: mapping.CodeJSON, Status: http.StatusNotFound, Reason: upstream.ReasonUnmapped, Message: "no id of it is known"}
	}
	return l.Tracker.Do(ctx, caller, call)
}

// TestReplayOfAnIDWithoutAPair: what the candidate does not get is a difference only where the reference carried it out.
func TestReplayOfAnIDWithoutAPair(t *testing.T) {
	t.Parallel()
	w := replayWorld(t, &writeLog{}, func(o *canary.Options) {
		candidate := o.Trackers[newName]
		candidate.Tracker = lacking{candidate.Tracker}
		o.Trackers[newName] = candidate
	})
	w.make(updateSummary(99999, "of nothing"))
	w.dropped(verdict.DropOwnError, 1)
	w.make(updateSummary(1, "of something"))
	if found := w.findings(); !slices.Contains(found, "attachment.update status status") {
		t.Errorf("an attachment that the candidate lacks: %q", found)
	}
}
