package state

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"portico/mapping"
)

// maxFindings bounds how many findings are kept.
const maxFindings = 10_000

// RecordFinding notes that a finding was seen finding.Count times more, last at
// finding.Last, which is now when it is zero. One that was fixed, or accepted for a
// time that is over by then, is open again; sightings from before it was called
// fixed change nothing about that. Of its samples, the latest are kept, as many as keep
// says; nil is no sample. The error is ErrFull when the finding is new and there are 10,000 others.
func (s *Store) RecordFinding(ctx context.Context, finding Finding, sample []byte, keep int) error {
	finding = s.completed(finding)
	return s.write(ctx, "recording a finding", func(tx *session) {
		tx.campaign(tx.forShare)
		tx.recordFinding(finding)
		tx.recordScopes(finding)
		if sample != nil {
			tx.keepSample(finding, sample, keep)
		}
	})
}

// completed fills in what a finding lacks.
func (s *Store) completed(f Finding) Finding {
	f.Signature, f.Operation = name(f.Signature), mapping.Operation(name(string(f.Operation)))
	f.Kind = cmp.Or(f.Kind, "reply")
	f.Count = max(f.Count, 1)
	if f.Last.IsZero() {
		f.Last = s.now()
	}
	if f.First.IsZero() || f.First.After(f.Last) {
		f.First = f.Last
	}
	return f
}

// recordFinding adds to what is known of a finding.
func (s *session) recordFinding(f Finding) {
	const again = `(portico_findings.status = 'fixed' AND portico_findings.changed_at <= excluded.last_at
		OR portico_findings.status = 'accepted' AND portico_findings.until_at <> 0 AND portico_findings.until_at <= excluded.last_at)`
	seen := one[int64](s, `INSERT INTO portico_findings
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
	if seen == f.Count && one[int](s, "SELECT count(*) FROM portico_findings") > maxFindings {
		s.fail(ErrFull) // the new one was one too many
	}
}

// maxScopes bounds the scopes of one finding.
const maxScopes = 50

// recordScopes keeps the scopes of a finding that are new, up to maxScopes of them.
func (s *session) recordScopes(f Finding) {
	for _, scope := range f.Scopes {
		s.exec(`INSERT INTO portico_finding_scopes (signature, caller, product) SELECT f.signature, ?, ? FROM portico_findings f
			WHERE f.signature = ? AND (SELECT count(*) FROM portico_finding_scopes s WHERE s.signature = f.signature) < ?
			ON CONFLICT DO NOTHING`, name(scope.Caller), name(scope.Product), f.Signature, maxScopes)
	}
}

// keepSample keeps a sample of a finding in place of the oldest ones.
func (s *session) keepSample(f Finding, sample []byte, keep int) {
	s.exec("INSERT INTO portico_samples (signature, at, content) VALUES (?, ?, ?)", f.Signature, f.Last, sample)
	s.exec(`DELETE FROM portico_samples WHERE signature = ? AND id NOT IN
		(SELECT id FROM portico_samples WHERE signature = ? ORDER BY at DESC, id DESC LIMIT ?)`, f.Signature, f.Signature, max(keep, 0))
}

// findings returns the findings that a condition selects; what names them in errors. What was accepted for a time that is over is open
// since then.
func (s *Store) findings(ctx context.Context, what, where string, args ...any) ([]Finding, error) {
	all, err := read[Finding](ctx, s, "reading "+what, `SELECT signature, operation, class, path, kind, seen, first_at, last_at, note,
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
	return s.findings(ctx, "the findings", "")
}

// Finding gives one finding with its samples, the latest first. The error is
// ErrNotFound when there is none.
func (s *Store) Finding(ctx context.Context, signature string) (Finding, []Sample, error) {
	const what = "a finding"
	found, err := s.findings(ctx, what, " WHERE signature = ?", name(signature))
	if err == nil && len(found) == 0 {
		err = failed("reading "+what, ErrNotFound)
	}
	if err != nil {
		return Finding{}, nil, err
	}
	samples, err := read[Sample](ctx, s, "reading the samples of a finding",
		"SELECT id, signature, at, content FROM portico_samples WHERE signature = ? ORDER BY at DESC, id DESC", name(signature))
	found[0].Samples = len(samples)
	return found[0], samples, err
}

// Judge sets the status of a finding, and leaves an audit record with the
// action "finding." and the status. From the moment on at which one is called fixed the
// comparisons of its operation count anew: those before were of another candidate. Until is for what is accepted; the zero time has
// no end. The error is ErrNotFound when there is no such finding.
func (s *Store) Judge(ctx context.Context, signature string, status FindingStatus, actor, reason string, until time.Time) error {
	switch status {
	case StatusOpen, StatusFixed:
		until = time.Time{}
	case StatusAccepted:
	default:
		return fmt.Errorf("state: judging a finding: %q is no status", status)
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
		if status == StatusFixed {
			tx.beginEvidence(name(signature), now)
		}
	})
}
