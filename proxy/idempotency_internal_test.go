package proxy

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"portico/upstream"
)

// The oldest record gives way when the memory is full, but never that of a create that is running.
func TestIdempotencyRecordsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewIdempotency(nil, nil)
		prints := upstream.NewFingerprints(nil)
		begin := func(key string) (claimed bool, err error) {
			_, claimed, err = i.store.Begin(t.Context(), prints.Of(key), prints.Of("content"))
			time.Sleep(time.Millisecond)
			return claimed, err
		}
		end := func(key string) { i.store.End(t.Context(), prints.Of(key), &IdempotencyRecord{Body: []byte(key)}) }
		want := func(key string, claimed bool) {
			t.Helper()
			if got, err := begin(key); got != claimed || err != nil {
				t.Errorf("%s: claimed %t, %v", key, got, err)
			}
		}
		for n := range maxIdempotencyRecords {
			want(strconv.Itoa(n), true)
		}
		if _, err := begin("more"); err == nil {
			t.Error("a running create gave way")
		}
		end("1")
		end("2")
		want("3", false)
		want("more", true) // 1, the oldest that is over, gives way
		want("2", false)
		i.store.End(t.Context(), prints.Of("more"), nil)
		want("more", true) // was given free
		end("more")
		time.Sleep(IdempotencyTime - time.Minute)
		want("2", false)
		time.Sleep(time.Minute)
		want("0", false) // still running, however old
		want("2", true)
		want("more", true)
		i.store.End(t.Context(), prints.Of("never begun"), nil)
	})
}
