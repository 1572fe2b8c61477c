package proxy

import (
	"testing"
	"time"

	"portico/upstream"
)

func TestIdempotencyRecordsInMemory(t *testing.T) {
	now := time.Now()
	m, prints := newMemoryStore(3, func() time.Time { return now }), upstream.NewFingerprints(nil)
	begin := func(key string) (claimed bool, err error) {
		t.Helper()
		_, claimed, err = m.Begin(t.Context(), prints.Of(key), prints.Of("content"))
		now = now.Add(time.Second)
		return claimed, err
	}
	end := func(key string) { m.End(t.Context(), prints.Of(key), &IdempotencyRecord{Body: []byte(key)}) }
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
	m.End(t.Context(), prints.Of("d"), nil)
	want("d", true) // was given free
	end("d")
	now = now.Add(IdempotencyTime - time.Minute)
	want("c", false)
	now = now.Add(time.Minute)
	want("a", false) // still running, however old
	want("c", true)
	want("d", true)
	if len(m.records) != 3 {
		t.Errorf("%d are remembered", len(m.records))
	}
	m.End(t.Context(), prints.Of("never begun"), nil)
}
