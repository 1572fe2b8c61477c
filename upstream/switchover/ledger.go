package switchover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"portico/upstream/state"
)

// ledger keeps the revisions of the rules.
type ledger interface {
	CurrentRevision(ctx context.Context) (state.Revision, bool, error)
	Revise(ctx context.Context, expected int64, next state.Revision) (state.Revision, error)
	Revisions(ctx context.Context, limit int) ([]state.Revision, error)
	Append(ctx context.Context, record state.Record) error
}

var _ ledger = (*state.Store)(nil)

// localLedger keeps revisions in memory, where there is no store. Its audit trail
// is what the revisions say.
type localLedger struct {
	mu        sync.Mutex
	revisions []state.Revision
}

// CurrentRevision implements ledger.
func (l *localLedger) CurrentRevision(context.Context) (state.Revision, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.revisions) == 0 {
		return state.Revision{}, false, nil
	}
	return l.revisions[len(l.revisions)-1], true, nil
}

// Revise implements ledger.
func (l *localLedger) Revise(_ context.Context, expected int64, next state.Revision) (state.Revision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var present state.Revision
	if len(l.revisions) > 0 {
		present = l.revisions[len(l.revisions)-1]
	}
	if present.Version != expected {
		return state.Revision{}, &state.ConflictError{Present: present}
	}
	next.Version = expected + 1
	if next.At.IsZero() {
		next.At = time.Now().UTC()
	}
	l.revisions = append(l.revisions, next)
	if len(l.revisions) > mostHistory {
		l.revisions = slices.Delete(l.revisions, 0, 1)
	}
	return next, nil
}

// Revisions implements ledger.
func (l *localLedger) Revisions(_ context.Context, limit int) ([]state.Revision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := slices.Clone(l.revisions)
	slices.Reverse(newest)
	return newest[:min(max(limit, 0), len(newest))], nil
}

// Append implements ledger.
func (l *localLedger) Append(context.Context, state.Record) error { return nil }

// base is the digest of the configured rules and of the trackers they are about.
func base(options *Options) (string, error) {
	table := options.Table
	table.Killed = nil
	text, err := json.Marshal(struct {
		Old, New string
		Table    Table
	}{options.Old, options.New, table}, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("digest the configured rules: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), nil
}

// revise makes the revision of a table that comes after the expected one.
func (s *Switchover) revise(ctx context.Context, expected int64, next state.Revision, t Table) (state.Revision, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return state.Revision{}, fmt.Errorf("write the rules as JSON: %w", err)
	}
	next.Table, next.At = text, s.now().UTC()
	return s.ledger.Revise(ctx, expected, next)
}

// tableOf reads the table of a revision.
func tableOf(revision state.Revision) (Table, error) {
	var t Table
	if err := json.Unmarshal(revision.Table, &t); err != nil {
		return Table{}, fmt.Errorf("read version %d of the rules: %w", revision.Version, err)
	}
	if len(t.Rules) == 0 {
		return Table{}, fmt.Errorf("read version %d of the rules: %w", revision.Version, errNoRules)
	}
	return t, nil
}

var errNoRules = errors.New("there are none")
