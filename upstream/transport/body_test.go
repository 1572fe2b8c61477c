package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCloseAfterTheContext: whoever is first to notice, a reader that had to leave did not leave by choice.
func TestCloseAfterTheContext(t *testing.T) {
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan ending, 2)
		resp := &http.Response{Body: io.NopCloser(strings.NewReader("abc"))}
		watch(ctx, resp, true, func(e ending) { ends <- e })
		cancel()
		_ = resp.Body.Close()
		if e := <-ends; ReasonOf(e.err) != Canceled || e.whole {
			t.Fatalf("%+v", e)
		}
	}
}

// TestToldIsCounted: a reader that gets an error finds it reported, though the end of the context was noticed elsewhere and first.
func TestToldIsCounted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reporting, reported := make(chan struct{}), make(chan struct{})
	silent, answer := io.Pipe()
	resp := &http.Response{Body: silent}
	watch(ctx, resp, true, func(ending) {
		close(reporting)
		time.Sleep(20 * time.Millisecond)
		close(reported)
	})
	cancel()
	<-reporting
	_ = answer.CloseWithError(context.Canceled)
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	select {
	case <-reported:
	default:
		t.Error("the reader was told first")
	}
}

// TestContextAfterTheEnd: what was read whole is whole, also when its reader's time is over before it closes.
func TestContextAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan ending, 2)
	resp := &http.Response{Body: io.NopCloser(strings.NewReader("abc"))}
	watch(ctx, resp, true, func(e ending) { ends <- e })
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	cancel()
	if e := <-ends; e.err != nil || !e.whole || e.bytes != 3 {
		t.Errorf("%+v", e)
	}
	_ = resp.Body.Close()
}

// TestOneEndUnderRace: end of data, error, Fail, Close and the context at the same time are one end.
func TestOneEndUnderRace(t *testing.T) {
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan ending, 9)
		resp := &http.Response{Body: io.NopCloser(strings.NewReader("abc"))}
		watch(ctx, resp, false, func(e ending) { ends <- e })
		var all sync.WaitGroup
		all.Go(cancel)
		all.Go(func() { _, _ = io.ReadAll(resp.Body) })
		all.Go(func() { _ = resp.Body.Close() })
		all.Go(func() { Fail(resp.Body, errors.New("not JSON")) })
		all.Wait()
		<-ends
		if len(ends) != 0 {
			t.Fatalf("%d more ends", len(ends))
		}
	}
}

func TestEmptyBodyNeedsNoClose(t *testing.T) {
	ends := make(chan ending, 1)
	resp := &http.Response{Body: http.NoBody}
	watch(t.Context(), resp, false, func(e ending) { ends <- e })
	if e := <-ends; e.err != nil || !e.whole || resp.Body != http.NoBody {
		t.Errorf("%+v", e)
	}
}

func TestFailOfAForeignBody(t *testing.T) {
	if Fail(strings.NewReader("abc"), errors.New("not JSON")) {
		t.Error("a plain reader cannot have heard")
	}
}

// TestUploadThatIsLongerThanItSays is its sender's failure.
func TestUploadThatIsLongerThanItSays(t *testing.T) {
	tr := rawTracker(t, func(c *net.TCPConn) { hang(c) })
	req := request(t, t.Context(), http.MethodPost, tr.url, "x")
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader("abcdef")), 3, nil
	if _, _, err := do(newBase(t, BaseOptions{}), req); ReasonOf(err) != RequestBody {
		t.Errorf("%v", err)
	}
}

// TestSilenceIsNotTheReaders: while nobody reads, the tracker is not waited for.
func TestSilenceIsNotTheReaders(t *testing.T) {
	const size = 8 << 20 // more than the system takes on the way
	tr := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(zeros{}, size)) })
	resp, err := newBase(t, BaseOptions{BodyIdleTimeout: 300 * time.Millisecond}).RoundTrip(get(t, tr.url))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.ReadFull(resp.Body, make([]byte, 1<<10))
	time.Sleep(600 * time.Millisecond)
	if n, err := io.Copy(io.Discard, resp.Body); n != size-1<<10 || err != nil {
		t.Errorf("%d bytes and %v", n, err)
	}
}
