package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestProbeEndsAnOutage measures from the moment the tracker is back to the first good answer.
func TestProbeEndsAnOutage(t *testing.T) {
	url := deadURL(t)
	o := BreakOptions{Probe: GetProbe(url, nil), OpenFor: 20 * time.Second}
	b := newBreakers(t, o)
	for range 5 {
		_, _, _ = do(b, get(t, url))
		_, _, _ = do(b, post(t, url))
	}
	if _, _, err := do(b, post(t, url)); b.Reads.State() != Open || ReasonOf(err) != BreakerOpen {
		t.Fatal("not open")
	}
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	l := listenAgain(t, strings.TrimPrefix(url, "http://"))
	back := time.Now()
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		eventually(t, method, func() bool {
			_, _, err := do(b, request(t, t.Context(), method, url, ""))
			return err == nil
		})
	}
	eventually(t, "probing has ended", func() bool {
		b.prober.mu.Lock()
		defer b.prober.mu.Unlock()
		return !b.prober.running
	})
	if took := time.Since(back); took > 500*time.Millisecond {
		t.Errorf("recovery took %v", took)
	} else {
		t.Logf("recovery took %v", took)
	}
}

// TestProbeIsBelievedOnce: a page that works proves little when calls go on failing.
func TestProbeIsBelievedOnce(t *testing.T) {
	m, o := newMoody(t, ""), isolated()
	var probes atomic.Int64
	o.OpenFor, o.OpenMax, o.ProbeEvery = 10*time.Second, 20*time.Second, 5*time.Millisecond
	o.Probe = func(context.Context, http.RoundTripper) error { probes.Add(1); return nil }
	b := opened(t, m, o)
	_ = m.read(t, b)
	if s := b.Reads.Status(); s.State != Open {
		t.Fatalf("%+v", s)
	}
	seen := probes.Load()
	eventually(t, "more probes", func() bool { return probes.Load() > seen+5 })
	if s := b.Reads.Status(); s.State != Open {
		t.Errorf("believed again: %+v", s)
	}
}

// TestProbesAreBounded: a hung tracker gets no more than Probes at a time, and a few patient ones; Close ends them.
func TestProbesAreBounded(t *testing.T) {
	var now, most, all atomic.Int64
	o := BreakOptions{Probes: 2, ProbeEvery: time.Millisecond, ProbeTimeout: 20 * time.Millisecond, OpenFor: time.Minute}
	o.Probe = func(ctx context.Context, _ http.RoundTripper) error {
		all.Add(1)
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	}
	b := newBreakers(t, o)
	url := deadURL(t)
	for range 5 {
		_, _, _ = do(b, get(t, url))
	}
	eventually(t, "7 probes", func() bool { return all.Load() >= 7 })
	b.Close()
	if most.Load() > 2+patientProbes || now.Load() != 0 {
		t.Errorf("%d at a time, %d left", most.Load(), now.Load())
	}
	n := all.Load()
	b.prober.start()
	if all.Load() != n {
		t.Error("probed after Close")
	}
}

func TestGetProbe(t *testing.T) {
	m := newMoody(t, "")
	w := newBase(t, BaseOptions{ResponseHeaderTimeout: 50 * time.Millisecond})
	for mood, alive := range map[string]bool{"ok": true, "404": true, "500": false, "reset": false, "cut": false, "hang": false} {
		m.mood.Store(mood)
		if err := GetProbe(m.url, nil)(t.Context(), w); (err == nil) != alive {
			t.Errorf("%s: %v", mood, err)
		}
	}
	html := func(_ int, head []byte) bool { return string(head) == "<html>" }
	m.mood.Store("ok")
	if err := GetProbe(m.url, html)(t.Context(), w); err != nil {
		t.Error(err)
	}
	m.mood.Store("404")
	if err := GetProbe(m.url, html)(t.Context(), w); !errors.Is(err, ErrUnwell) {
		t.Errorf("not what was due: %v", err)
	}
	if err := GetProbe("http://%zz/", nil)(t.Context(), w); err == nil {
		t.Error("a bad address is alive")
	}
}

func listenAgain(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestPanickingProbe: it says nothing about the tracker, and the next ones are made.
func TestPanickingProbe(t *testing.T) {
	m, o := newMoody(t, ""), isolated()
	var probes, told atomic.Int64
	o.OpenFor, o.OpenMax, o.ProbeEvery = 10*time.Second, 20*time.Second, 5*time.Millisecond
	o.OnPanic = func(cause any) { told.Add(1) }
	o.Probe = func(context.Context, http.RoundTripper) error {
		if probes.Add(1) < 3 {
			panic("in the probe")
		}
		return nil
	}
	b := newBreakers(t, o)
	m.mood.Store("500")
	for range 10 {
		_ = m.read(t, b)
	}
	eventually(t, "a probe is good", func() bool {
		m.mood.Store("ok")
		_ = m.read(t, b)
		return b.Reads.State() == Closed
	})
	if told.Load() != 2 {
		t.Errorf("%d panics were told of", told.Load())
	}
}
