package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
)

// abc responds with a part of a body and the rest when it is told so.
func abc(t *testing.T, rest <-chan struct{}) *tracker {
	return newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "abc")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-rest:
			_, _ = io.WriteString(w, "d")
		case <-r.Context().Done():
		}
	})
}

// observed is a stack that tells seen about its calls, which stream.
func observed(t *testing.T, seen Observer) *Stack {
	o := plain(BaseOptions{})
	o.Observer = seen
	return newStack(t, o)
}

// begin begins a call whose body is then read.
func begin(t *testing.T, s *Stack, ctx context.Context, url string) *http.Response {
	t.Helper()
	resp, err := s.RoundTrip(request(t, With(ctx, streamed), http.MethodGet, url, ""))
	process.Must(t, err)
	return resp
}

// slowObserver takes 20 ms to observe.
type slowObserver struct{ begun, told chan struct{} }

func (o slowObserver) Observe(Sample) {
	close(o.begun)
	time.Sleep(20 * time.Millisecond)
	close(o.told)
}

// TestReaderSeesReportedEnd: when Read returns the end of the context, that has been observed already, although in another goroutine.
func TestReaderSeesReportedEnd(t *testing.T) {
	tr, seen := abc(t, nil), slowObserver{make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	resp := begin(t, observed(t, seen), ctx, tr.url)
	defer resp.Body.Close()
	cancel()
	<-seen.begun
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	select {
	case <-seen.told:
	default:
		t.Error("Read returned first")
	}
}

// TestOneEndUnderRace: end of data, error, Fail, Close and the context at the same time are one end.
func TestOneEndUnderRace(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") })
	for range 100 {
		var seen recorder
		stack := observed(t, &seen)
		ctx, cancel := context.WithCancel(t.Context())
		resp := begin(t, stack, ctx, tr.url)
		var all sync.WaitGroup
		all.Go(cancel)
		all.Go(func() { _, _ = io.ReadAll(resp.Body) })
		all.Go(func() { _ = resp.Body.Close() })
		all.Go(func() { Fail(resp.Body, errors.New("not JSON")) })
		all.Wait()
		_ = seen.last(t)
		if n := len(seen.all()); n != 1 || stack.Limiter.Load().InUse != 0 {
			t.Fatalf("%d ends", n)
		}
	}
}

// TestEmptyBodyNeedsNoClose to free its slot.
func TestEmptyBodyNeedsNoClose(t *testing.T) {
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) {})
	stack := newPlain(t, BaseOptions{})
	resp, err := stack.RoundTrip(post(t, tr.url))
	if err != nil || stack.Limiter.Load().InUse != 0 {
		t.Errorf("%v, %+v", err, stack.Limiter.Load())
	}
	_ = resp.Body.Close()
}

// TestSilenceIsNotTheReaders: while the caller does not read, the tracker is not waited for.
func TestSilenceIsNotTheReaders(t *testing.T) {
	t.Parallel()         // most of it waiting
	const size = 8 << 20 // more than the system takes on the way
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(zeros{}, size)) })
	var seen recorder
	o := plain(BaseOptions{HeaderTimeout: 1500 * time.Millisecond})
	o.Observer = &seen
	resp, err := newStack(t, o).RoundTrip(get(t, tr.url))
	process.Must(t, err)
	defer resp.Body.Close()
	_, _ = io.ReadFull(resp.Body, make([]byte, 1<<10))
	time.Sleep(2 * time.Second)
	n, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if n != size-1<<10 || err != nil || seen.last(t).Total < 2*time.Second {
		t.Errorf("%d bytes and %v, measured %+v", n, err, seen.last(t))
	}
}

// TestResponsesBeyondMaxBody end there and count as failures of the tracker; one within it does not.
func TestResponsesBeyondMaxBody(t *testing.T) {
	const most, short = 256 << 10, 32 << 10
	flood := newTracker(t, bigResponse)
	small := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, short)) })
	stack, ctx := newStack(t, Options{}), With(t.Context(), func(c *Call) { c.MaxBody = most })
	for range 10 {
		if body := must(t, stack, request(t, ctx, http.MethodGet, small.url, "")); len(body) != short {
			t.Fatalf("read %d bytes of a short response", len(body))
		}
	}
	process.Eventually(t, "the breaker is open", func() bool {
		_, body, err := do(stack, request(t, ctx, http.MethodGet, fmt.Sprint(flood.url, "/", flood.hits.Load()), ""))
		if reason := ReasonOf(err); reason != BreakerOpen && (reason != BadResponse || len(body) > 2*most) {
			t.Errorf("a flood ended with %v after %d bytes", err, len(body))
		}
		return ReasonOf(err) == BreakerOpen
	})
}

// bigResponse sends more than any prefetch and any socket buffer would swallow at once, then goes on until the client is gone.
func bigResponse(w http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 64<<10)
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func TestMeasureReportsEveryEndOnce(t *testing.T) {
	big := newTracker(t, bigResponse)
	cut := rawTracker(t, respond("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", nil))
	for name, c := range map[string]struct {
		use  func(rt http.RoundTripper) error
		want Sample
	}{
		"dead port": {func(rt http.RoundTripper) error {
			_, _, err := do(rt, post(t, deadURL(t)))
			return err
		}, Sample{Class: Write, Tries: 1, Reason: Connect}},
		"cut short": {func(rt http.RoundTripper) error {
			_, _, err := do(rt, post(t, cut.url))
			return err
		}, Sample{Class: Write, Tries: 1, Status: 200, Reason: CutShort, Unknown: true, BytesIn: 3, BytesOut: 2}},
		"closed early by choice": {func(rt http.RoundTripper) error {
			resp, err := rt.RoundTrip(get(t, big.url))
			_, _ = io.ReadFull(resp.Body, make([]byte, 10))
			return errors.Join(err, resp.Body.Close(), resp.Body.Close())
		}, Sample{Class: Read, Tries: 1, Status: 200}},
		"never closed, context ended": {func(rt http.RoundTripper) error {
			ctx, cancel := context.WithCancel(With(t.Context(), shadow))
			_, err := rt.RoundTrip(request(t, ctx, http.MethodGet, big.url, ""))
			cancel()
			return err
		}, Sample{Class: Shadow, Tries: 1, Status: 200, Reason: Canceled}},
		"closed after the context": {func(rt http.RoundTripper) error { // whichever is noticed first, the reader did not close by choice
			ctx, cancel := context.WithCancel(With(t.Context(), streamed))
			resp, err := rt.RoundTrip(request(t, ctx, http.MethodGet, abc(t, nil).url, ""))
			cancel()
			return errors.Join(err, resp.Body.Close())
		}, Sample{Class: Read, Tries: 1, Status: 200, Reason: Canceled}},
		"context ended after the whole": {func(rt http.RoundTripper) error {
			rest := make(chan struct{})
			close(rest)
			ctx, cancel := context.WithCancel(With(t.Context(), streamed))
			resp, err := rt.RoundTrip(request(t, ctx, http.MethodGet, abc(t, rest).url, ""))
			_, _ = io.ReadAll(resp.Body)
			cancel()
			return err
		}, Sample{Class: Read, Tries: 1, Status: 200, BytesIn: 4}},
		"not what was due": {func(rt http.RoundTripper) error {
			resp, err := rt.RoundTrip(get(t, big.url))
			Fail(resp.Body, errors.New("not JSON"))
			return errors.Join(err, resp.Body.Close())
		}, Sample{Class: Read, Tries: 1, Status: 200, Reason: BadResponse}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // some ends race
				var seen recorder
				_ = c.use(observed(t, &seen))
				got := seen.last(t)
				got.Total = 0
				if c.want.BytesIn == 0 { // however much was read ahead
					got.BytesIn = 0
				}
				if n := len(seen.all()); got != c.want || n != 1 {
					t.Fatalf("%d samples\n%+v\nwant\n%+v", n, got, c.want)
				}
			}
		})
	}
}
