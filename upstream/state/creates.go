package state

import (
	"context"
	"crypto/sha256"
	"time"

	"portico/upstream"
)

// How often creates that are too old are removed, and how many are kept at most.
const (
	createPrune = time.Minute
	maxCreates  = 16_384
)

// BeginCreate claims the fingerprint of a create for a day. Where it is claimed
// already, claimed is false and known is what the store has of it. The caller ends its claim with
// EndCreate; a process that dies before it does leaves a create that is Running.
func (s *Store) BeginCreate(ctx context.Context, fingerprint, content [sha256.Size]byte) (known upstream.IdempotencyRecord, claimed bool, err error) {
	now := s.now()
	err = s.write(ctx, "claiming a create", func(tx *session) {
		if s.pruneDue() { // what has expired and, of what is not running, the oldest that are too many
			tx.exec("DELETE FROM portico_creates WHERE begun_at <= ?", now.Add(-upstream.IdempotencyTime))
			tx.exec(`DELETE FROM portico_creates WHERE running = 0 AND begun_at <
				(SELECT begun_at FROM portico_creates ORDER BY begun_at DESC LIMIT 1 OFFSET ?)`, maxCreates-1)
		}
		claimed = tx.exec(`INSERT INTO portico_creates (fingerprint, content, begun_at, running) VALUES (?, ?, ?, 1)
			ON CONFLICT (fingerprint) DO UPDATE SET content = excluded.content, begun_at = excluded.begun_at, running = 1, body = NULL, failed = NULL
			WHERE portico_creates.begun_at <= ?`, fingerprint[:], content[:], now, now.Add(-upstream.IdempotencyTime)) > 0
		if !claimed {
			known = one[upstream.IdempotencyRecord](tx, "SELECT content, running, begun_at, body, failed FROM portico_creates WHERE fingerprint = ?", fingerprint[:])
		}
	})
	return known, claimed && err == nil, err
}

// KeepCreate notes that a create is still being carried out: it counts as begun now.
// One that was not mentioned for a while belongs to a process that has ended.
func (s *Store) KeepCreate(ctx context.Context, fingerprint [sha256.Size]byte) error {
	return s.write(ctx, "keeping a create", func(tx *session) {
		tx.exec("UPDATE portico_creates SET begun_at = ? WHERE fingerprint = ? AND running = 1", s.now(), fingerprint[:])
	})
}

// EndCreate notes the outcome of a claim, of which Body and Failed count; nil gives
// it up.
func (s *Store) EndCreate(ctx context.Context, fingerprint [sha256.Size]byte, outcome *upstream.IdempotencyRecord) error {
	return s.write(ctx, "ending a create", func(tx *session) {
		if outcome == nil {
			tx.exec("DELETE FROM portico_creates WHERE fingerprint = ? AND running = 1", fingerprint[:])
			return
		}
		tx.exec("UPDATE portico_creates SET running = 0, body = ?, failed = ? WHERE fingerprint = ? AND running = 1",
			outcome.Body, jsonColumn{outcome.Failed}, fingerprint[:])
	})
}

// pruneDue reports whether it is time again to remove creates.
func (s *Store) pruneDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.createsPruned) >= createPrune {
		s.createsPruned = now
		return true
	}
	return false
}
