package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
)

// TestStoresOutliveHouses opens a store once for all houses that use it, and closes
// it with the last.
func TestStoresOutliveHouses(t *testing.T) {
	logger, kept, dir := newLogger(io.Discard, Default().Log), newLasting(), t.TempDir()
	one, other := "sqlite:"+filepath.Join(dir, "one.db"), "sqlite:"+filepath.Join(dir, "other.db")
	acquire := func(at string) *openStore {
		t.Helper()
		held, err := kept.acquire(t.Context(), at, logger)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	first, second, third := acquire(one), acquire(one), acquire(other)
	if first != second || first.replays != second.replays || first == third {
		t.Error("two houses with the same state have two stores, or two with different ones share one")
	}
	kept.release(first, logger)
	if _, err := second.Findings(t.Context()); err != nil {
		t.Errorf("the store was closed under a house: %v", err)
	}
	kept.release(second, logger)
	if _, err := second.Findings(t.Context()); err == nil {
		t.Error("a store that nobody uses is open")
	}
	kept.release(third, logger)
	if again := acquire(one); again == first {
		t.Error("a closed store was given")
	} else {
		kept.release(again, logger)
	}
	if _, err := kept.acquire(t.Context(), "sqlite:"+filepath.Join(dir, "no", "folder.db"), logger); err == nil {
		t.Error("a store in no folder was opened")
	}
}

// TestStoredReplays keeps what became of creates, and does not carry one out again
// whose process is no more.
func TestStoredReplays(t *testing.T) {
	logger, kept := newLogger(io.Discard, Default().Log), newLasting()
	held, err := kept.acquire(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "p.db"), logger)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	replays := storedReplays{store: held.Store, logger: logger, now: func() time.Time { return now }}
	begin := func(name string) (proxy.Replay, bool) {
		t.Helper()
		known, claimed, err := replays.Begin(t.Context(), sha256.Sum256([]byte(name)), sha256.Sum256([]byte("content")))
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
	replays.End(t.Context(), sha256.Sum256([]byte("done")), &proxy.Replay{Content: content, Body: []byte(`{"id":1}`)})
	replays.End(t.Context(), sha256.Sum256([]byte("failed")), &proxy.Replay{Content: content, Failed: &mapping.Error{Code: 1, Status: 500, Unknown: true}})
	replays.End(t.Context(), sha256.Sum256([]byte("freed")), nil)
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
	now = now.Add(2 * abandoned)
	if known, claimed := begin("running"); claimed || known.Running || known.Failed == nil || !known.Failed.Unknown {
		t.Errorf("what was abandoned is known as %+v", known)
	}
	kept.release(held, logger)
	_, _, err = replays.Begin(context.Background(), content, content)
	if said, ok := errors.AsType[*mapping.Error](err); !ok || said.Status != 503 {
		t.Errorf("without a store a create is answered %v", err)
	}
	replays.End(context.Background(), content, nil) // has nothing to tell and does not panic
}
