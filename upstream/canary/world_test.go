package canary_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
	"portico/upstream/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The names of the two trackers in these tests.
const (
	oldName = "old"
	newName = "new"
)

// world is two trackers behind sockets, a client of the first, and a Canary that
// compares what it gets with the second.
type world struct {
	t          *testing.T
	old, fresh *site
	client     upstream.Tracker
	store      *state.Store
	canary     *canary.Canary
	caller     upstream.Caller
}

// site is a tracker that can be put behind another handler.
type site struct {
	*tracker.Server
	url  *url.URL
	host *httptest.Server
}

func newSite(t testing.TB, options tracker.Options, around func(http.Handler) http.Handler) *site {
	t.Helper()
	s := &site{Server: tracker.New(options)}
	var handler http.Handler = s.Server
	if around != nil {
		handler = around(handler)
	}
	s.host = httptest.NewServer(handler)
	s.url, _ = url.Parse(s.host.URL)
	t.Cleanup(func() {
		_ = s.Server.Close() // ends what hangs on purpose
		s.host.CloseClientConnections()
		s.host.Close()
	})
	return s
}

func dial(t testing.TB, at *url.URL, options transport.Options) upstream.Tracker {
	t.Helper()
	stack := transport.New(options)
	t.Cleanup(stack.Close)
	return process.Client(t, at, stack, "bugzilla-5")
}

// worldOptions say what is special about a world.
type worldOptions struct {
	old, fresh tracker.Options
	aroundOld  func(http.Handler) http.Handler
	around     func(http.Handler) http.Handler // of the candidate
	transport  transport.Options               // of the candidate's client
	state      string                          // where what is found is kept; empty is in memory
	tune       func(*canary.Options)
}

// newWorld compares everything, confirms soon and keeps no rate.
func newWorld(t *testing.T, special worldOptions) *world {
	t.Helper()
	w := &world{t: t, old: newSite(t, special.old, special.aroundOld), fresh: newSite(t, special.fresh, special.around)}
	w.client = dial(t, w.old.url, transport.Options{})
	w.caller = upstream.Caller{Credentials: upstream.Credentials{APIKey: tracker.Keys(tracker.SeedFixture)["dev@example.com"]}, Address: "192.0.2.7"}
	store, err := state.Open(t.Context(), cmp.Or(special.state, "sqlite::memory:"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	w.store = store
	o := canary.Options{
		Trackers: map[string]canary.Tracker{
			oldName: {Tracker: dial(t, w.old.url, transport.Options{})}, newName: {Tracker: dial(t, w.fresh.url, special.transport)},
		},
		Store: store, Candidate: newName, Split: jsonblob.SplitOptions{Dir: t.TempDir()},
		Settings: canary.Settings{
			Sampling: canary.Sampling{Default: 1}, PerSecond: 100_000, ConfirmAfter: 30 * time.Millisecond, Timeout: time.Minute,
		},
	}
	if special.tune != nil {
		special.tune(&o)
	}
	w.canary = canary.New(canary.Complete(o))
	t.Cleanup(func() { _ = w.canary.Close() })
	return w
}

// plan has a tracker render plans.
func plan(o *canary.Options, tracker string, render func() ([]byte, error)) {
	t := o.Trackers[tracker]
	t.Plan = func(context.Context, upstream.Call) ([]byte, error) { return render() }
	o.Trackers[tracker] = t
}

// make does what a switchover and the proxy do: it calls the old tracker, tells the
// Canary, and reads the answer to its end.
func (w *world) make(call upstream.Call) upstream.Response {
	return w.makeAs(call, upstream.Sides{Serving: oldName, Compared: newName}, w.client)
}

func (w *world) makeAs(call upstream.Call, sides upstream.Sides, client upstream.Tracker) upstream.Response {
	w.t.Helper()
	answer := call.Make(w.t.Context(), client, w.caller)
	answer.Document = w.canary.Answered(w.t.Context(), w.caller, call, sides, answer)
	if answer.Document != nil {
		if _, err := answer.Document.WriteTo(io.Discard); err != nil {
			w.t.Errorf("the client's answer broke: %v", err)
		}
		if err := answer.Document.Close(); err != nil {
			w.t.Errorf("closing the client's answer: %v", err)
		}
	}
	return answer
}

func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	if err := w.canary.Settle(ctx); err != nil {
		w.t.Fatalf("the comparison did not settle: %v, %+v", err, w.canary.Load())
	}
}

// findings gives what was found as "operation class path", sorted.
func (w *world) findings() []string {
	w.t.Helper()
	w.settle()
	list, err := w.store.Findings(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var told []string
	for _, f := range list {
		told = append(told, string(f.Operation)+" "+f.Class+" "+f.Path)
	}
	slices.Sort(told)
	return told
}

// sum adds up what was counted of one operation, or of all when it is empty.
func (w *world) sum(operation mapping.Operation) state.Tally {
	w.t.Helper()
	w.settle()
	list, err := w.store.Tallies(w.t.Context(), time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	all := state.Tally{Dropped: map[string]int64{}}
	for _, t := range list {
		if operation != "" && t.Operation != operation {
			continue
		}
		all.Compared, all.Same, all.Noisy = all.Compared+t.Compared, all.Same+t.Same, all.Noisy+t.Noisy
		all.Transient, all.Confirmed, all.Accepted = all.Transient+t.Transient, all.Confirmed+t.Confirmed, all.Accepted+t.Accepted
		all.Failed += t.Failed
		for reason, n := range t.Dropped {
			all.Dropped[reason] += n
		}
		all.AnsweredLatency, all.OtherLatency = state.AddBuckets(all.AnsweredLatency, t.AnsweredLatency), state.AddBuckets(all.OtherLatency, t.OtherLatency)
	}
	return all
}

// dropped checks that everything that was sampled was dropped for one reason.
func (w *world) dropped(reason verdict.DropReason, n int64) {
	w.t.Helper()
	got := w.sum("")
	if got.Dropped[string(reason)] != n || len(got.Dropped) != 1 || got.Compared != 0 {
		w.t.Errorf("got %d compared and %v dropped, want %d dropped as %s", got.Compared, got.Dropped, n, reason)
	}
}

func flagTypes(product string) upstream.Call {
	return upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: product}}
}

func attachment(ids ...string) upstream.Call {
	return upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: ids}}
}

func updateSummary(id int64, summary string) upstream.Call {
	return upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{id}, Summary: &summary}}
}

var must = process.Must
