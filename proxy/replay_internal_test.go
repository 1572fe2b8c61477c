package proxy

import (
	"testing"
	"time"
)

func TestReplayMemory(t *testing.T) {
	now := time.Now()
	m, prints := newReplayMemory(3, func() time.Time { return now }), newFingerprints()
	begin := func(key string) (claimed bool, err error) {
		t.Helper()
		_, claimed, err = m.Begin(t.Context(), prints.of(key), prints.of("content"))
		now = now.Add(time.Second)
		return claimed, err
	}
	end := func(key string) { m.End(t.Context(), prints.of(key), &Replay{Body: []byte(key)}) }
	want := func(key string, claimed bool) {
		t.Helper()
		if got, err := begin(key); got != claimed || err != nil {
			t.Errorf("%s: claimed %t, %v", key, got, err)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		want(key, true)
	}
	if _, err := begin("d"); err == nil {
		t.Error("a running create gave way")
	}
	end("b")
	end("c")
	want("d", true) // b, the oldest that is over, gives way
	want("a", false)
	want("c", false)
	m.End(t.Context(), prints.of("d"), nil)
	want("d", true) // was given free
	end("d")
	now = now.Add(ReplayTime - time.Minute)
	want("c", false)
	now = now.Add(time.Minute)
	want("a", false) // still running, however old
	want("c", true)
	want("d", true)
	if len(m.byKey) != 3 || m.order.Len() != 3 {
		t.Errorf("%d and %d are remembered", len(m.byKey), m.order.Len())
	}
	m.End(t.Context(), prints.of("never begun"), nil)
}
