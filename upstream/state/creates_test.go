package state

import (
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

var (
	someKey     = sha256.Sum256([]byte("key"))
	someContent = sha256.Sum256([]byte("content"))
)

func TestCreateIsClaimedOnce(t *testing.T) {
	failed := &mapping.Error{Code: 32000, Status: 504, Message: "Too late.", Reason: mapping.ReasonTooLarge, RetryAfter: time.Second, Unknown: true}
	withCause := *failed
	withCause.Err = errors.New("the connection with its secrets")
	for name, tt := range map[string]struct{ outcome, want upstream.IdempotencyRecord }{
		"done":   {upstream.IdempotencyRecord{Body: []byte(`{"id":1}`)}, upstream.IdempotencyRecord{Body: []byte(`{"id":1}`)}},
		"failed": {upstream.IdempotencyRecord{Failed: &withCause}, upstream.IdempotencyRecord{Failed: failed}},
	} {
		t.Run(name, func(t *testing.T) {
			onQuick(t, func(t *testing.T, s *Store, _ *clock) {
				if _, claimed, err := s.BeginCreate(t.Context(), someKey, someContent); !claimed || err != nil {
					t.Fatalf("a new key is not claimed: %v", err)
				}
				known, claimed, err := s.BeginCreate(t.Context(), someKey, sha256.Sum256(nil))
				if want := (upstream.IdempotencyRecord{Content: someContent, Running: true, Since: noon}); claimed || err != nil || !reflect.DeepEqual(known, want) {
					t.Fatalf("got %+v, %v, %v, want %+v", known, claimed, err, want)
				}
				must(t, s.EndCreate(t.Context(), someKey, &tt.outcome))
				must(t, s.EndCreate(t.Context(), someKey, &upstream.IdempotencyRecord{Body: []byte("too late")}))
				must(t, s.EndCreate(t.Context(), someKey, nil))
				known, claimed, err = s.BeginCreate(t.Context(), someKey, someContent)
				want := tt.want
				want.Content, want.Since = someContent, noon
				if claimed || err != nil || !reflect.DeepEqual(known, want) {
					t.Errorf("got %+v, %v, %v, want %+v", known, claimed, err, want)
				}
			})
		})
	}
}

func TestCreateIsGivenFree(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		for range 2 {
			if _, claimed, err := s.BeginCreate(t.Context(), someKey, someContent); !claimed || err != nil {
				t.Fatalf("not claimed: %v", err)
			}
			must(t, s.EndCreate(t.Context(), someKey, nil))
		}
		must(t, s.EndCreate(t.Context(), sha256.Sum256(nil), nil))
		if got := count(t, s, "portico_creates"); got != 0 {
			t.Errorf("%d are kept", got)
		}
	})
}

// TestOnlyRunningCreatesAreKept: a create that has ended expires a day after it began.
func TestOnlyRunningCreatesAreKept(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		running := sha256.Sum256(nil)
		for _, key := range [][sha256.Size]byte{someKey, running} {
			_, _, err := s.BeginCreate(t.Context(), key, someContent)
			must(t, err)
		}
		must(t, s.EndCreate(t.Context(), someKey, &upstream.IdempotencyRecord{Body: []byte("{}")}))
		clock.pass(time.Hour)
		must(t, s.KeepCreate(t.Context(), someKey))
		must(t, s.KeepCreate(t.Context(), running))
		for key, want := range map[[sha256.Size]byte]time.Time{someKey: noon, running: noon.Add(time.Hour)} {
			if known, _, err := s.BeginCreate(t.Context(), key, someContent); err != nil || !known.Since.Equal(want) {
				t.Errorf("running is %t, since %v, want %v (%v)", known.Running, known.Since, want, err)
			}
		}
	})
}

// TestCreateExpires a day after it began, whether or not it has been removed by then.
func TestCreateExpires(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		begin := func(key, content [sha256.Size]byte) (upstream.IdempotencyRecord, bool) {
			known, claimed, err := s.BeginCreate(t.Context(), key, content)
			must(t, err)
			return known, claimed
		}
		other := sha256.Sum256([]byte("other content"))
		begin(someKey, someContent)
		must(t, s.EndCreate(t.Context(), someKey, &upstream.IdempotencyRecord{Body: []byte("{}")}))
		clock.pass(24*time.Hour - 30*time.Second)
		begin(sha256.Sum256(nil), someContent) // removes what has expired by now
		clock.pass(29 * time.Second)
		if _, claimed := begin(someKey, other); claimed {
			t.Error("it was forgotten a second too early")
		}
		clock.pass(time.Second)
		if _, claimed := begin(someKey, other); !claimed {
			t.Error("it is remembered for longer than a day")
		}
		known, _ := begin(someKey, other)
		if want := (upstream.IdempotencyRecord{Content: other, Running: true, Since: noon.Add(24 * time.Hour)}); !reflect.DeepEqual(known, want) {
			t.Errorf("got %+v, want %+v", known, want)
		}
		clock.pass(24*time.Hour - 30*time.Second)
		begin(sha256.Sum256([]byte("third")), someContent)
		clock.pass(time.Minute)
		begin(sha256.Sum256([]byte("fourth")), someContent)
		if got := count(t, s, "portico_creates"); got != 2 {
			t.Errorf("%d are kept, want 2: the others have expired", got)
		}
	})
}

// TestOldestCreatesGiveWay where there are too many that have ended.
func TestOldestCreatesGiveWay(t *testing.T) {
	s := open(t, memory)
	clock := newClock(s)
	_, _, err := s.BeginCreate(t.Context(), someKey, someContent)
	must(t, err)
	must(t, s.write(t.Context(), "filling the table", func(tx *session) {
		for i := range 16_386 {
			key := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
			tx.exec("INSERT INTO portico_creates (fingerprint, content, begun_at, running) VALUES (?, ?, ?, ?)", key[:], key[:], noon.Add(time.Duration(i)*time.Millisecond), i == 0)
		}
	}))
	clock.pass(time.Minute)
	_, _, err = s.BeginCreate(t.Context(), sha256.Sum256(nil), someContent)
	must(t, err)
	oldest := sha256.Sum256([]byte{0, 0})
	if known, _, err := s.BeginCreate(t.Context(), oldest, someContent); !known.Running || err != nil {
		t.Errorf("the oldest one, which is running, is %+v, %v", known, err)
	}
	if got := count(t, s, "portico_creates"); got != 16_384+3 {
		t.Errorf("%d are kept, want 16384, two that are running, and the new one", got)
	}
}
