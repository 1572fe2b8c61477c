package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream/state"
)

// TestStoredReplays keeps what became of creates, and does not carry one out again
// whose process is no more.
func TestStoredReplays(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	store, err := state.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "p.db"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	records := newIdempotencyRecords(store, "postgres://", logger)
	records.now = func() time.Time { return now }
	begin := func(name string) (proxy.IdempotencyRecord, bool) {
		t.Helper()
		known, claimed, err := records.Begin(t.Context(), sha256.Sum256([]byte(name)), sha256.Sum256([]byte("content")))
		if err != nil {
			t.Fatal(err)
		}
		return known, claimed
	}
	for _, name := range []string{"done", "failed", "freed", "running"} {
		if _, claimed := begin(name); !claimed {
			t.Errorf("%s is claimed already", name)
		}
	}
	content := sha256.Sum256([]byte("content"))
	records.End(t.Context(), sha256.Sum256([]byte("done")), &proxy.IdempotencyRecord{Content: content, Body: []byte(`{"id":1}`)})
	records.End(t.Context(), sha256.Sum256([]byte("failed")), &proxy.IdempotencyRecord{Content: content, Failed: &mapping.Error{Code: 1, Status: 500, Unknown: true}})
	records.End(t.Context(), sha256.Sum256([]byte("freed")), nil)
	if known, claimed := begin("done"); claimed || string(known.Body) != `{"id":1}` || known.Content != content {
		t.Errorf("what was done is known as %+v", known)
	}
	if known, claimed := begin("failed"); claimed || known.Failed == nil || !known.Failed.Unknown {
		t.Errorf("what failed is known as %+v", known)
	}
	if _, claimed := begin("freed"); !claimed {
		t.Error("what was given free is claimed")
	}
	if known, claimed := begin("running"); claimed || !known.Running || known.Failed != nil {
		t.Errorf("what runs is known as %+v", known)
	}
	now = now.Add(2 * abandonedAfter)
	if known, claimed := begin("running"); claimed || known.Running || known.Failed == nil || !known.Failed.Unknown {
		t.Errorf("what was abandoned is known as %+v", known)
	}
	store.Close()
	_, _, err = records.Begin(context.Background(), content, content)
	if said, ok := errors.AsType[*mapping.Error](err); !ok || said.Status != 503 {
		t.Errorf("without a store a create is answered %v", err)
	}
	records.End(context.Background(), content, nil) // has nothing to tell and does not panic
}

// TestCreatesOfAProcessThatIsNoMore are of unknown outcome at once where nobody else can have begun them.
func TestCreatesOfAProcessThatIsNoMore(t *testing.T) {
	logger, at, key := slog.New(slog.DiscardHandler), "sqlite:"+filepath.Join(t.TempDir(), "p.db"), sha256.Sum256([]byte("key"))
	for _, name := range []string{"first", "second"} {
		store, err := state.Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		records := newIdempotencyRecords(store, at, logger)
		known, claimed, err := records.Begin(t.Context(), key, key)
		again, _, _ := records.Begin(t.Context(), key, key)
		switch {
		case err != nil:
			t.Fatal(err)
		case name == "first" && (!claimed || !again.Running):
			t.Errorf("the first process: %+v, %+v", known, again)
		case name == "second" && (claimed || known.Running || known.Failed == nil || !known.Failed.Unknown):
			t.Errorf("the second process: %+v", known)
		}
		store.Close()
	}
}

// An outcome that cannot be stored is unknown later; the create is not carried out again.
func TestOutcomesThatCannotBeStored(t *testing.T) {
	at := "sqlite:" + filepath.Join(t.TempDir(), "p.db")
	store, err := state.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := time.Now()
	records := newIdempotencyRecords(store, at, slog.New(slog.DiscardHandler))
	records.now = func() time.Time { return now }
	unwritable, cancel := context.WithCancel(t.Context())
	cancel()
	key := sha256.Sum256([]byte("key"))
	if _, claimed, err := records.Begin(t.Context(), key, key); !claimed || err != nil {
		t.Fatal(claimed, err)
	}
	records.End(unwritable, key, &proxy.IdempotencyRecord{Content: key, Body: []byte(`{"id":1}`)})
	if _, _, err := records.Begin(unwritable, key, key); err == nil {
		t.Error("a store that cannot be read has responded")
	}
	if known, claimed, err := records.Begin(t.Context(), key, key); err != nil || claimed || !known.Running {
		t.Errorf("at first it is known as %+v (%v)", known, err)
	}
	now = now.Add(abandonedAfter + time.Second)
	if known, claimed, err := records.Begin(t.Context(), key, key); err != nil || claimed || known.Running || known.Failed == nil || !known.Failed.Unknown {
		t.Errorf("later it is known as %+v (%v)", known, err)
	}
}

// A create that runs for long is not abandoned as long as its process lives.
func TestHeartbeat(t *testing.T) {
	store, err := state.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "p.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records := newIdempotencyRecords(store, "postgres://", slog.New(slog.DiscardHandler))
	key := sha256.Sum256([]byte("key"))
	if _, claimed, err := records.Begin(t.Context(), key, key); !claimed || err != nil {
		t.Fatal(claimed, err)
	}
	before, _, err := store.BeginCreate(t.Context(), key, key)
	if err != nil {
		t.Fatal(err)
	}
	records.heartbeat(key)
	after, _, err := store.BeginCreate(t.Context(), key, key)
	if err != nil || !after.Since.After(before.Since) {
		t.Errorf("the create is known since %v, and after a heartbeat since %v (%v)", before.Since, after.Since, err)
	}
	records.End(t.Context(), key, nil)
	if _, running := records.beats.Load(key); running {
		t.Error("there are heartbeats although no create is running")
	}
}
