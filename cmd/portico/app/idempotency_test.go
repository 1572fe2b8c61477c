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

// openRecords keeps records in a store, as at an address that processes share or in a file.
func openRecords(t *testing.T, file, at string) *idempotencyRecords {
	t.Helper()
	store, err := state.Open(t.Context(), "sqlite:"+file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return newIdempotencyRecords(store, at, slog.New(slog.DiscardHandler))
}

// TestCreatesAreRemembered: what became of creates is known, and one whose process has ended, or whose outcome could not be stored, is not
// carried out again.
func TestCreatesAreRemembered(t *testing.T) {
	now, content := time.Now(), sha256.Sum256([]byte("content"))
	records := openRecords(t, filepath.Join(t.TempDir(), "p.db"), "postgres://")
	records.now = func() time.Time { return now }
	begin := func(name string) (proxy.IdempotencyRecord, bool) {
		t.Helper()
		known, claimed, err := records.Begin(t.Context(), sha256.Sum256([]byte(name)), content)
		if err != nil {
			t.Fatal(err)
		}
		return known, claimed
	}
	unwritable, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]func(key [sha256.Size]byte){
		"done": func(key [sha256.Size]byte) {
			records.End(t.Context(), key, &proxy.IdempotencyRecord{Content: content, Body: []byte(`{"id":1}`)})
		},
		"lost": func(key [sha256.Size]byte) {
			records.End(unwritable, key, &proxy.IdempotencyRecord{Content: content, Body: []byte(`{"id":1}`)})
		},
		"failed": func(key [sha256.Size]byte) {
			records.End(t.Context(), key, &proxy.IdempotencyRecord{Content: content, Failed: &mapping.Error{Code: 1, Status: 500, Unknown: true}})
		},
		"freed":   func(key [sha256.Size]byte) { records.End(t.Context(), key, nil) },
		"running": func([sha256.Size]byte) {},
	} {
		if _, claimed := begin(name); !claimed {
			t.Errorf("%s is claimed already", name)
		}
		end(sha256.Sum256([]byte(name)))
	}
	if known, claimed := begin("done"); claimed || string(known.Body) != `{"id":1}` || known.Content != content {
		t.Errorf("what was done is known as %+v", known)
	}
	if known, claimed := begin("failed"); claimed || known.Failed == nil || !known.Failed.Unknown {
		t.Errorf("what failed is known as %+v", known)
	}
	if _, claimed := begin("freed"); !claimed {
		t.Error("what was given free is claimed")
	}
	for _, name := range []string{"running", "lost"} {
		if known, claimed := begin(name); claimed || !known.Running || known.Failed != nil {
			t.Errorf("%s is known as %+v", name, known)
		}
	}
	now = now.Add(2 * abandonedAfter)
	for _, name := range []string{"running", "lost"} {
		if known, claimed := begin(name); claimed || known.Running || known.Failed == nil || !known.Failed.Unknown {
			t.Errorf("later %s is known as %+v", name, known)
		}
	}
	_ = records.store.Close()
	_, _, err := records.Begin(t.Context(), content, content)
	if said, ok := errors.AsType[*mapping.Error](err); !ok || said.Status != 503 {
		t.Errorf("without a store a create is answered %v", err)
	}
	records.End(t.Context(), content, nil) // has nothing to tell and does not panic
}

// TestCreatesOfAProcessThatHasEnded are of unknown outcome at once where no other process can have begun them.
func TestCreatesOfAProcessThatHasEnded(t *testing.T) {
	file, key := filepath.Join(t.TempDir(), "p.db"), sha256.Sum256([]byte("key"))
	for _, name := range []string{"first", "second"} {
		records := openRecords(t, file, "sqlite:"+file)
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
		_ = records.store.Close()
	}
}

// A create that runs for long is not abandoned as long as its process lives.
func TestHeartbeat(t *testing.T) {
	records, key := openRecords(t, filepath.Join(t.TempDir(), "p.db"), "postgres://"), sha256.Sum256([]byte("key"))
	if _, claimed, err := records.Begin(t.Context(), key, key); !claimed || err != nil {
		t.Fatal(claimed, err)
	}
	before, _, err := records.store.BeginCreate(t.Context(), key, key)
	if err != nil {
		t.Fatal(err)
	}
	records.heartbeat(key)
	after, _, err := records.store.BeginCreate(t.Context(), key, key)
	if err != nil || !after.Since.After(before.Since) {
		t.Errorf("the create is known since %v, and after a heartbeat since %v (%v)", before.Since, after.Since, err)
	}
	records.End(t.Context(), key, nil)
	if _, running := records.beats.Load(key); running {
		t.Error("there are heartbeats although no create is running")
	}
}
