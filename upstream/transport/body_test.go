package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
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
