package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	. "portico/upstream/transport"
)

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
		"not what was due": {func(rt http.RoundTripper) error {
			resp, err := rt.RoundTrip(get(t, big.url))
			Fail(resp.Body, errors.New("not JSON"))
			return errors.Join(err, resp.Body.Close())
		}, Sample{Class: Read, Tries: 1, Status: 200, Reason: BadResponse}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen recorder
			_ = c.use(observed(t, &seen))
			got := seen.last(t)
			got.Total = 0
			if c.want.BytesIn == 0 { // however much was read ahead
				got.BytesIn = 0
			}
			if got != c.want {
				t.Errorf("sample %+v\nwant   %+v", got, c.want)
			}
			if n := len(seen.all()); n != 1 {
				t.Errorf("%d samples", n)
			}
		})
	}
}
