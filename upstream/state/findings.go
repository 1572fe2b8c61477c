package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFindings bounds how many findings are kept, maxScopes the scopes of one of them.
const (
	maxFindings = 10_000
	maxScopes   = 50
)

// Sighting is a finding that was seen Count times more, first at First and last at Last.
type Sighting struct {
	Finding
	Sample []byte // or nil
}

// RecordFindings notes sightings, all or, with an error, none. A finding that was fixed, or accepted for a time that is over by then, is
// open again; sightings from before it was called fixed change nothing about that. Of its samples, the latest are kept, as many as keep
// says. New findings that are too many, since there are 10,000 others, are refused; their signatures are returned.
func (s *Store) RecordFindings(ctx context.Context, seen []*Sighting, keep int) (refused []string, err error) {
	seen = slices.SortedFunc(slices.Values(seen), func(a, b *Sighting) int { // or two processes could wait for each other's rows for ever
		return strings.Compare(a.Signature, b.Signature)
	})
	return refused, s.write(ctx, "recording findings", func(tx *session) {
		tx.lockCampaign(tx.forShare)
		free := maxFindings - one[int](tx, "SELECT count(*) FROM portico_findings")
		for _, f := range seen {
			switch isNew := tx.recordFinding(f); {
			case isNew && free <= 0: // the store is full
				tx.exec("DELETE FROM portico_findings WHERE signature = ?", f.Signature)
				refused = append(refused, f.Signature)
				continue
			case isNew:
				free--
			}
			tx.recordDetails(f, keep)
		}
	})
}

// recordDetails adds the scopes and the sample of a sighting.
func (s *session) recordDetails(f *Sighting, keep int) {
	for _, scope := range f.Scopes { // those that are new
		s.exec(`INSERT INTO portico_finding_scopes (signature, caller, product) SELECT f.signature, ?, ? FROM portico_findings f
			WHERE f.signature = ? AND (SELECT count(*) FROM portico_finding_scopes s WHERE s.signature = f.signature) < ?
			ON CONFLICT DO NOTHING`, name(scope.Caller), name(scope.Product), f.Signature, maxScopes)
	}
	if f.Sample != nil { // which takes the place of the oldest ones
		s.exec("INSERT INTO portico_samples (signature, at, content) VALUES (?, ?, ?)", f.Signature, f.Last, f.Sample)
		s.exec(`DELETE FROM portico_samples WHERE signature = ? AND id NOT IN
			(SELECT id FROM portico_samples WHERE signature = ? ORDER BY at DESC, id DESC LIMIT ?)`, f.Signature, f.Signature, max(keep, 0))
	}
}

// recordFinding adds to what is known of a finding, and reports whether that was nothing.
func (s *session) recordFinding(f *Sighting) (isNew bool) {
	const again = `(portico_findings.status = 'fixed' AND portico_findings.changed_at <= excluded.last_at
		OR portico_findings.status = 'accepted' AND portico_findings.until_at <> 0 AND portico_findings.until_at <= excluded.last_at)`
	return f.Count == one[int64](s, `INSERT INTO portico_findings
		(signature, operation, class, path, kind, seen, first_at, last_at, note, status, changed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?)
		ON CONFLICT (signature) DO UPDATE SET
			seen = portico_findings.seen + excluded.seen,
			first_at = CASE WHEN excluded.first_at < portico_findings.first_at THEN excluded.first_at ELSE portico_findings.first_at END,
			last_at = CASE WHEN excluded.last_at > portico_findings.last_at THEN excluded.last_at ELSE portico_findings.last_at END,
			note = CASE WHEN excluded.note <> '' THEN excluded.note ELSE portico_findings.note END,
			changed_at = CASE WHEN `+again+` THEN excluded.last_at ELSE portico_findings.changed_at END,
			status = CASE WHEN `+again+` THEN 'open' ELSE portico_findings.status END
		RETURNING seen`,
		f.Signature, f.Operation, f.Class, f.Path, f.Kind, f.Count, f.First, f.Last, f.Note, f.Last)
}

// findings returns the findings that a condition selects. What was accepted for a time that is over is open
// since then.
func (s *Store) findings(ctx context.Context, where string, args ...any) ([]Finding, error) {
	all, err := read[Finding](ctx, s, "reading the findings", `SELECT signature, operation, class, path, kind, seen, first_at, last_at, note,
		status, actor, reason, until_at, changed_at, (SELECT count(*) FROM portico_samples s WHERE s.signature = f.signature),
		(SELECT `+s.dialect.objects+`('caller', caller, 'product', product) ORDER BY caller, product)
			FROM portico_finding_scopes s WHERE s.signature = f.signature HAVING count(*) > 0)
		FROM portico_findings f`+where, args...)
	for i := range all {
		if f := &all[i]; f.Status == StatusAccepted && !f.Until.IsZero() && !f.Until.After(s.now()) {
			f.Status, f.Changed = StatusOpen, f.Until
		}
	}
	return all, err
}

// Findings gives all findings.
func (s *Store) Findings(ctx context.Context) ([]Finding, error) {
	return s.findings(ctx, "")
}

// Finding gives one finding with its samples, the latest first. The error is
// ErrNotFound when there is none.
func (s *Store) Finding(ctx context.Context, signature string) (Finding, []Sample, error) {
	found, err := s.findings(ctx, " WHERE signature = ?", name(signature))
	if err == nil && len(found) == 0 {
		err = failed("reading the findings", ErrNotFound)
	}
	if err != nil {
		return Finding{}, nil, err
	}
	samples, err := read[Sample](ctx, s, "reading the samples of a finding",
		"SELECT id, signature, at, content FROM portico_samples WHERE signature = ? ORDER BY at DESC, id DESC", name(signature))
	return found[0], samples, err
}

// Judge sets the status of a finding, and leaves an audit record with the
// action "finding." and the status. From the moment on at which one is called fixed the
// comparisons of its operation count anew: those before were of another candidate. Until is for what is accepted; the zero time has
// no end. The error is ErrNotFound when there is no such finding.
func (s *Store) Judge(ctx context.Context, signature string, status FindingStatus, actor, reason string, until time.Time) error {
	if status != StatusAccepted {
		until = time.Time{}
	}
	var detail []byte
	if !until.IsZero() {
		detail = fmt.Appendf(nil, `{"until":%q}`, until.UTC().Format(time.RFC3339))
	}
	judged := Record{Actor: actor, Action: "finding." + string(status), Subject: signature, Reason: reason, Detail: detail}
	return s.record(ctx, "judging a finding", judged, func(tx *session) {
		now := s.now()
		if tx.exec(`UPDATE portico_findings SET status = ?, actor = ?, reason = ?, until_at = ?, changed_at = ? WHERE signature = ?`,
			status, actor, reason, until, now, name(signature)) == 0 {
			tx.fail(ErrNotFound)
		}
		if status == StatusFixed { // the comparisons of its operation count anew
			tx.exec(`INSERT INTO portico_evidence (operation, since) SELECT operation, CAST(? AS BIGINT) FROM portico_findings WHERE signature = ?
				ON CONFLICT (operation) DO UPDATE SET since = excluded.since`, now, name(signature))
		}
	})
}
