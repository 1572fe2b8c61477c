package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	. "portico/upstream/transport"
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
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestCloseAfterTheContext: whether Close or the context is noticed first, the reader did not close by choice.
func TestCloseAfterTheContext(t *testing.T) {
	tr := abc(t, nil)
	for range 100 {
		var seen recorder
		ctx, cancel := context.WithCancel(t.Context())
		resp := begin(t, observed(t, &seen), ctx, tr.url)
		cancel()
		_ = resp.Body.Close()
		if s := seen.last(t); s.Reason != Canceled {
			t.Fatalf("%+v", s)
		}
	}
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

// TestContextAfterTheEnd: what was read whole is whole, also when its reader's time is over before it closes.
func TestContextAfterTheEnd(t *testing.T) {
	rest := make(chan struct{})
	close(rest)
	var seen recorder
	ctx, cancel := context.WithCancel(t.Context())
	resp := begin(t, observed(t, &seen), ctx, abc(t, rest).url)
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	cancel()
	if s := seen.last(t); s.Reason != "" || s.BytesIn != 4 {
		t.Errorf("%+v", s)
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
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.ReadFull(resp.Body, make([]byte, 1<<10))
	time.Sleep(2 * time.Second)
	n, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if n != size-1<<10 || err != nil || seen.last(t).Total < 2*time.Second {
		t.Errorf("%d bytes and %v, measured %+v", n, err, seen.last(t))
	}
}

// TestAnswersLongerThanAnybodyReads: a body beyond MaxBody ends there and counts as a failure; one within it does not.
func TestAnswersLongerThanAnybodyReads(t *testing.T) {
	piece := bytes.Repeat([]byte(" "), 32<<10)
	flood := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write([]byte("{"))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(piece)
		}
	})
	short := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(piece) })
	const most = 256 << 10
	stack := newStack(t, Options{})
	for range 10 {
		read, err := bounded(t, stack, short.url, most)
		if read != len(piece) || err != nil {
			t.Fatalf("read %d bytes of a short answer: %v", read, err)
		}
	}
	var refused int
	for i := range 20 {
		read, err := bounded(t, stack, fmt.Sprint(flood.url, "/", i), most)
		said, ok := errors.AsType[*Error](err)
		switch {
		case !ok:
			t.Fatalf("a flood ended with %v", err)
		case said.Reason == BreakerOpen:
			refused++
		case said.Reason != BadResponse || read > most+len(piece):
			t.Fatalf("a flood ended with %v after %d bytes", err, read)
		}
	}
	if refused == 0 {
		t.Error("the breaker took floods for answers")
	}
}

// bounded reads a response whose MaxBody is most.
func bounded(t *testing.T, stack *Stack, url string, most int64) (int, error) {
	t.Helper()
	request := get(t, url)
	response, err := stack.RoundTrip(request.WithContext(With(request.Context(), func(c *Call) { c.MaxBody = most })))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return len(text), err
}
