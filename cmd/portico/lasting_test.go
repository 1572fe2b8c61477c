package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"
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
	replays := newStoredReplays(held.Store, "postgres://", logger)
	replays.now = func() time.Time { return now }
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

// TestCreatesOfAProcessThatIsNoMore are of unknown outcome at once where nobody else can have begun them.
func TestCreatesOfAProcessThatIsNoMore(t *testing.T) {
	logger, at, key := newLogger(io.Discard, Default().Log), "sqlite:"+filepath.Join(t.TempDir(), "p.db"), sha256.Sum256([]byte("key"))
	for _, name := range []string{"first", "second"} {
		kept := newLasting()
		held, err := kept.acquire(t.Context(), at, logger)
		if err != nil {
			t.Fatal(err)
		}
		replays := newStoredReplays(held.Store, at, logger)
		known, claimed, err := replays.Begin(t.Context(), key, key)
		again, _, _ := replays.Begin(t.Context(), key, key)
		switch {
		case err != nil:
			t.Fatal(err)
		case name == "first" && (!claimed || !again.Running):
			t.Errorf("the first process: %+v, %+v", known, again)
		case name == "second" && (claimed || known.Running || known.Failed == nil || !known.Failed.Unknown):
			t.Errorf("the second process: %+v", known)
		}
		kept.release(held, logger)
	}
}

// TestOutcomesThatCannotBeWritten are not lost while the process lasts.
func TestOutcomesThatCannotBeWritten(t *testing.T) {
	logger, kept := newLogger(io.Discard, Default().Log), newLasting()
	at := "sqlite:" + filepath.Join(t.TempDir(), "p.db")
	held, err := kept.acquire(t.Context(), at, logger)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.release(held, logger)
	replays := newStoredReplays(held.Store, at, logger)
	unwritable, cancel := context.WithCancel(t.Context())
	cancel()
	done, freed := sha256.Sum256([]byte("done")), sha256.Sum256([]byte("freed"))
	for key, outcome := range map[[sha256.Size]byte]*proxy.Replay{done: {Content: done, Body: []byte(`{"id":1}`)}, freed: nil} {
		if _, claimed, err := replays.Begin(t.Context(), key, key); !claimed || err != nil {
			t.Fatal(claimed, err)
		}
		replays.End(unwritable, key, outcome)
		if _, _, err := replays.Begin(unwritable, key, key); err == nil {
			t.Error("a store that cannot be asked has answered")
		}
	}
	for range 2 { // the second time from the store
		if known, claimed, err := replays.Begin(t.Context(), done, done); err != nil || claimed || known.Running || string(known.Body) != `{"id":1}` {
			t.Errorf("what was done is known as %+v (%v)", known, err)
		}
	}
	if _, claimed, err := replays.Begin(t.Context(), freed, freed); !claimed || err != nil {
		t.Errorf("what was given free is claimed (%v)", err)
	}
}

// TestAReloadWithoutACandidateDoesNotTurnAKill: everything goes to the old tracker, and not to the one that it was to be taken
// away from, only because the configuration names that one alone.
func TestAReloadWithoutACandidateDoesNotTurnAKill(t *testing.T) {
	logger, kept := newLogger(io.Discard, Default().Log), newLasting()
	built := func(primary, candidate string) (*house, error) {
		cfg := Default()
		cfg.Trackers = map[string]TrackerConfig{}
		for _, name := range []string{"main", "new"} {
			cfg.Trackers[name] = TrackerConfig{URL: "http://127.0.0.1:9/", Dialect: "bugzilla-5", Timeout: time.Minute}
		}
		cfg.Primary, cfg.Candidate, cfg.State = primary, candidate, "sqlite:"+filepath.Join(t.TempDir(), "p.db")
		rooms, err := build(cfg, noVariables, logger, kept)
		if err == nil {
			t.Cleanup(rooms.close)
		}
		return rooms, err
	}
	first, err := built("main", "new")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.switchover.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	if _, err := built("new", ""); err == nil || !strings.Contains(err.Error(), "revive the rules") {
		t.Errorf("the kill is turned round: %v", err)
	}
	if _, err := built("main", ""); err != nil {
		t.Errorf("the old tracker alone is refused: %v", err)
	}
	if err := first.switchover.Revive(t.Context(), "ann", "over"); err != nil {
		t.Fatal(err)
	}
	if _, err := built("new", ""); err != nil {
		t.Errorf("without a kill it is refused: %v", err)
	}
}
