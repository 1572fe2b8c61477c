package canary_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/transport"
)

var sides = upstream.Sides{Serving: oldName, Compared: newName}

// holding keeps requests waiting until they are released.
func holding(entered, release chan struct{}) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestFullQueueDrops(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 100), make(chan struct{})
	w := newWorld(t, worldOptions{
		around: holding(entered, release),
		tune:   func(o *canary.Options) { o.Workers, o.Queue = 1, 2 },
	})
	w.make(flagTypes("TestProduct"))
	<-entered // the worker has it
	for range 5 {
		w.make(flagTypes("TestProduct"))
	}
	process.Eventually(t, "the comparison is that far", func() bool { got := w.canary.Load(); return got.Queued == 2 && got.Pending == 3 && w.canary.Held() > 0 })
	close(release)
	got := w.sum("")
	if got.Compared != 3 || got.Dropped[string(verdict.DropQueueFull)] != 3 || len(got.Dropped) != 1 {
		t.Errorf("got %+v, want 3 compared and 3 dropped", got)
	}
	if got := w.canary.Load(); got != (canary.Load{}) || w.canary.Held() != 0 {
		t.Errorf("got %+v at the end, want nothing", got)
	}
}

func TestRateLimitDrops(t *testing.T) {
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.PerSecond = 2 }})
	for range 40 {
		w.make(flagTypes("TestProduct"))
	}
	got := w.sum("")
	if got.Compared < 2 || got.Compared > 12 || got.Compared+got.Dropped[string(verdict.DropRateLimit)] != 40 || len(got.Dropped) != 1 {
		t.Errorf("got %+v, want about 2 compared and the others dropped", got)
	}
}

func TestConfirmationsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}},
		tune:  func(o *canary.Options) { o.Queue, o.ConfirmAfter = 2, time.Minute },
	})
	for range 10 {
		w.make(flagTypes("TestProduct"))
		process.Eventually(t, "the comparison is that far", func() bool { load := w.canary.Load(); return load.Queued == 0 && load.Pending == load.Waiting })
	}
	if load := w.canary.Load(); load.Waiting != 2 || load.Pending != 2 {
		t.Errorf("got %+v, want 2 waiting", load)
	}
	must(t, w.canary.Close())
	tallies, err := w.store.Tallies(t.Context(), time.Time{})
	must(t, err)
	dropped := map[string]int64{}
	for _, tally := range tallies {
		for reason, n := range tally.Dropped {
			dropped[reason] += n
		}
	}
	if dropped[string(verdict.DropQueueFull)] != 8 || dropped[string(verdict.DropClosed)] != 2 {
		t.Errorf("dropped %v, want 8 because too many wait and 2 at the end", dropped)
	}
}

// TestAnswersThatAreNotCompared: each has a reason of its own.
func TestAnswersThatAreNotCompared(t *testing.T) {
	t.Parallel()
	failed := func(reason mapping.Reason) upstream.Response {
		return upstream.Response{Err: &mapping.Error{Code: 1, Status: 500, Message: "m", Reason: reason}}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		sides  upstream.Sides
		answer upstream.Response
		want   verdict.DropReason
	}{
		{"304", t.Context(), sides, upstream.Response{Document: &mapping.Document{NotModified: true}}, verdict.DropNotModified},
		{"timeout", t.Context(), sides, failed(mapping.ReasonTimeout), verdict.DropAnsweredFailed},
		{"unreachable", t.Context(), sides, failed(mapping.ReasonUnreachable), verdict.DropAnsweredFailed},
		{"bad answer", t.Context(), sides, failed(mapping.ReasonBadResponse), verdict.DropAnsweredFailed},
		{"web server", t.Context(), sides, failed(mapping.ReasonWebServer), verdict.DropAnsweredFailed},
		{"candidate", t.Context(), upstream.Sides{Serving: newName, Compared: oldName}, failed(mapping.ReasonUnreachable), verdict.DropCandidateFailed},
		{"refused", t.Context(), sides, failed(mapping.ReasonInvalid), verdict.DropOwnError},
		{"canceled", t.Context(), sides, failed(mapping.ReasonCanceled), verdict.DropUnread},
		{"gone", gone, sides, upstream.Response{Err: context.Canceled}, verdict.DropUnread},
		{"own mistake", t.Context(), sides, upstream.Response{Err: errors.New("x")}, verdict.DropOwnError},
		{"no JSON", t.Context(), sides, upstream.Response{Document: mapping.NewDocument([]byte(`{"a":1,"a":2}`))}, verdict.DropUnreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, worldOptions{})
			document := w.canary.Answered(c.ctx, w.caller, flagTypes("TestProduct"), c.sides, c.answer)
			if err := document.Close(); err != nil {
				t.Error(err)
			}
			w.dropped(c.want, 1)
		})
	}
}

// TestCallsThatAreNotCompared: each has a reason of its own, and whichever tracker is sick is not asked.
func TestCallsThatAreNotCompared(t *testing.T) {
	t.Parallel()
	byOld := func(w *world) { w.make(attachment("1")) }
	byNew := func(w *world) {
		w.makeAs(attachment("1"), upstream.Sides{Serving: newName, Compared: oldName}, dial(t, w.fresh.url, transport.Options{}))
	}
	refuses := func(name string) worldOptions {
		return worldOptions{tune: func(o *canary.Options) {
			t := o.Trackers[name]
			t.Refuses = func() bool { return true }
			o.Trackers[name] = t
		}}
	}
	for name, c := range map[string]struct {
		special worldOptions
		caller  *upstream.Caller
		do      func(*world)
		want    verdict.DropReason
	}{
		"hangs up": {do: func(w *world) {
			answer := attachment("4").Make(t.Context(), w.client, w.caller)
			if err := w.canary.Answered(t.Context(), w.caller, attachment("4"), sides, answer).Close(); err != nil { // a megabyte that the client has not read
				t.Error(err)
			}
		}, want: verdict.DropUnread},
		"cookies": {caller: &upstream.Caller{Credentials: upstream.Credentials{Cookies: "Bugzilla_login=1; Bugzilla_logincookie=x"}}, do: byOld, want: verdict.DropCredentials},
		"policy": {special: worldOptions{tune: func(o *canary.Options) {
			t := o.Trackers[newName]
			t.Caller = func(caller upstream.Caller) (upstream.Caller, bool) { return caller, false }
			o.Trackers[newName] = t
		}}, do: byOld, want: verdict.DropCredentials},
		"sick candidate": {special: refuses(newName), do: byOld, want: verdict.DropBreaker},
		"sick reference": {special: refuses(oldName), do: func(w *world) {
			before := w.old.Requests()
			byNew(w)
			if w.settle(); !maps.Equal(w.old.Requests(), before) {
				t.Errorf("the old tracker was asked for %v, before for %v", w.old.Requests(), before)
			}
		}, want: verdict.DropOtherFailed},
		"failed reference": {special: worldOptions{old: tracker.Options{Faults: []tracker.Fault{{Kind: tracker.FaultHTML200}}}}, do: byNew, want: verdict.DropOtherFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.special)
			if c.caller != nil {
				w.caller = *c.caller
			}
			c.do(w)
			w.dropped(c.want, 1)
		})
	}
}

// TestTheOtherTrackerIsToldWhatItIsFor: role, credential, and no cookies.
func TestTheOtherTrackerIsToldWhatItIsFor(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	w := newWorld(t, worldOptions{around: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Header.Clone()
			if r.URL.Query().Get("Bugzilla_api_key") == "" {
				t.Error("the credential was not forwarded")
			}
			next.ServeHTTP(w, r)
		})
	}})
	w.caller.Credentials.Cookies = "theme=dark"
	w.make(flagTypes("TestProduct"))
	if header := <-seen; header.Get("Portico-Role") != "shadow" || header.Get("Cookie") != "" {
		t.Errorf("the candidate was asked with %v", header)
	}
	if got := w.sum(""); got.Same != 1 {
		t.Errorf("got %+v, want it compared", got)
	}
}

func TestClosedDropsAndKeepsTheClientGoing(t *testing.T) {
	w := newWorld(t, worldOptions{})
	answer := attachment("4").Make(t.Context(), w.client, w.caller)
	began := w.canary.Answered(t.Context(), w.caller, attachment("4"), sides, answer)
	must(t, w.canary.Close())
	n, err := began.WriteTo(io.Discard)
	if err != nil || n < 1_000_000 {
		t.Errorf("the client read %d bytes (%v)", n, err)
	}
	if err := began.Close(); err != nil {
		t.Error(err)
	}
	w.make(flagTypes("TestProduct"))
	w.make(attachment("4"))
	w.dropped(verdict.DropClosed, 3)
	if err := w.canary.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if load := w.canary.Load(); load != (canary.Load{}) || w.canary.Held() != 0 {
		t.Errorf("got %+v, want nothing held", load)
	}
}

func TestCandidateWithoutConnectionDrops(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{transport: transport.Options{
		Tries: 1, Break: transport.BreakOptions{Unanswered: 2, OpenFor: time.Minute},
	}})
	w.fresh.host.Close()
	for range 4 {
		w.make(flagTypes("TestProduct"))
		process.Eventually(t, "nothing is under way", func() bool { return w.canary.Load().Pending == 0 })
	}
	got := w.sum("")
	if got.Dropped[string(verdict.DropUnreachable)] != 2 || got.Dropped[string(verdict.DropBreaker)] != 2 || got.Compared != 0 {
		t.Errorf("got %+v, want 2 dropped as unreachable and 2 by the breaker", got)
	}
	entered, release := make(chan struct{}, 100), make(chan struct{})
	w = newWorld(t, worldOptions{
		around:    holding(entered, release),
		transport: transport.Options{Limit: transport.LimitOptions{Slots: 1, Queue: -1}},
	})
	w.make(flagTypes("TestProduct"))
	<-entered
	w.make(flagTypes("TestProduct"))
	process.Eventually(t, "the comparison is that far", func() bool { return w.canary.Load().Pending == 1 })
	close(release)
	if got := w.sum(""); got.Dropped[string(verdict.DropOverload)] != 1 || got.Same != 1 {
		t.Errorf("got %+v, want one dropped and one compared", got)
	}
}
