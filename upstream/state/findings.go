package state

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"portico/mapping"
)

// maxFindings bounds how many findings are kept.
const maxFindings = 10_000

// RecordFinding notes that a finding was seen finding.Count times more, last at
// finding.Last, which is now when it is zero. One that was fixed, or accepted for a
// time that is over by then, is open again; sightings from before it was called
// fixed change nothing about that. A nil sample is not counted. Of its samples, so many
// are kept as keep says, each with the same likelihood. The error is ErrFull when
// the finding is new and there are 10,000 others.
func (s *Store) RecordFinding(ctx context.Context, finding Finding, sample []byte, keep int) error {
	finding = s.completed(finding)
	return s.write(ctx, "recording a finding", func(tx session) error {
		if err := tx.campaign(ctx, tx.forShare); err != nil {
			return err
		}
		offered, err := tx.recordFinding(ctx, finding, sample != nil)
		if err == nil {
			err = tx.recordScopes(ctx, finding)
		}
		if err != nil || sample == nil {
			return err
		}
		return tx.keepSample(ctx, Sample{Signature: finding.Signature, At: finding.Last, Text: sample}, offered, keep)
	})
}

// completed fills in what a finding lacks.
func (s *Store) completed(f Finding) Finding {
	f.Signature, f.Class, f.Path, f.Note = name(f.Signature), clean(f.Class), clean(f.Path), clean(f.Note)
	f.Operation = mapping.Operation(name(string(f.Operation)))
	f.Kind = cmp.Or(clean(f.Kind), "reply")
	f.Count = max(f.Count, 1)
	if f.Last.IsZero() {
		f.Last = s.now()
	}
	if f.First.IsZero() || f.First.After(f.Last) {
		f.First = f.Last
	}
	return f
}

// recordFinding gives how many samples of the finding there were, this one
// included.
func (s session) recordFinding(ctx context.Context, f Finding, sampled bool) (offered int64, err error) {
	more := 0
	if sampled {
		more = 1
	}
	const again = `(portico_findings.status = 'fixed' AND portico_findings.changed_at <= excluded.last_at
		OR portico_findings.status = 'accepted' AND portico_findings.until_at <> 0 AND portico_findings.until_at <= excluded.last_at)`
	var seen int64
	err = s.row(ctx, `INSERT INTO portico_findings
		(signature, operation, class, path, kind, seen, first_at, last_at, note, status, changed_at, offered)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?)
		ON CONFLICT (signature) DO UPDATE SET
			seen = portico_findings.seen + excluded.seen,
			first_at = CASE WHEN excluded.first_at < portico_findings.first_at THEN excluded.first_at ELSE portico_findings.first_at END,
			last_at = CASE WHEN excluded.last_at > portico_findings.last_at THEN excluded.last_at ELSE portico_findings.last_at END,
			note = CASE WHEN excluded.note <> '' THEN excluded.note ELSE portico_findings.note END,
			changed_at = CASE WHEN `+again+` THEN excluded.last_at ELSE portico_findings.changed_at END,
			status = CASE WHEN `+again+` THEN 'open' ELSE portico_findings.status END,
			offered = portico_findings.offered + excluded.offered
		RETURNING seen, offered`,
		f.Signature, string(f.Operation), f.Class, f.Path, f.Kind, f.Count, micros(f.First), micros(f.Last), f.Note,
		micros(f.Last), more).Scan(&seen, &offered)
	if err != nil || seen > f.Count {
		return offered, err
	}
	var all int64
	if err = s.row(ctx, "SELECT count(*) FROM portico_findings").Scan(&all); err == nil && all > maxFindings {
		err = ErrFull // the new one was one too many
	}
	return offered, err
}

// maxScopes bounds the scopes of one finding.
const maxScopes = 50

// recordScopes keeps the scopes of a finding that are new, up to maxScopes of them.
func (s session) recordScopes(ctx context.Context, f Finding) error {
	for _, scope := range f.Scopes {
		_, err := s.exec(ctx, `INSERT INTO portico_finding_scopes (signature, caller, product) SELECT f.signature, ?, ? FROM portico_findings f
			WHERE f.signature = ? AND (SELECT count(*) FROM portico_finding_scopes s WHERE s.signature = f.signature) < ?
			ON CONFLICT DO NOTHING`, name(scope.Caller), name(scope.Product), f.Signature, maxScopes)
		if err != nil {
			return err
		}
	}
	return nil
}

// readScopes adds the scopes to findings.
func (s *Store) readScopes(ctx context.Context, findings []Finding) error {
	scopes := map[string][]Scope{}
	_, err := list(ctx, s.read(), func(scan scanner) (scope Scope, err error) {
		var signature string
		err = scan(&signature, &scope.Caller, &scope.Product)
		scopes[signature] = append(scopes[signature], scope)
		return scope, err
	}, "SELECT signature, caller, product FROM portico_finding_scopes ORDER BY signature, caller, product")
	for i := range findings {
		findings[i].Scopes = scopes[findings[i].Signature]
	}
	return err
}

// keepSample keeps a sample or not: the n-th that is offered stays with a
// likelihood of keep in n, in place of any that was kept (algorithm R).
func (s session) keepSample(ctx context.Context, sample Sample, offered int64, keep int) error {
	ids, err := list(ctx, s, scanOne[int64], "SELECT id FROM portico_samples WHERE signature = ?", sample.Signature)
	if err != nil {
		return err
	}
	takes := keep > 0 && (len(ids) < keep || rand.Int64N(max(offered, 1)) < int64(keep))
	left := keep
	if takes {
		left--
	}
	for len(ids) > max(left, 0) {
		at := rand.IntN(len(ids))
		if _, err := s.exec(ctx, "DELETE FROM portico_samples WHERE id = ?", ids[at]); err != nil {
			return err
		}
		ids = slices.Delete(ids, at, at+1)
	}
	if takes {
		_, err = s.exec(ctx, "INSERT INTO portico_samples (signature, at, content) VALUES (?, ?, ?)", sample.Signature, micros(sample.At), sample.Text)
	}
	return err
}

// selectFindings reads everything about findings; conditions follow.
const selectFindings = `SELECT signature, operation, class, path, kind, seen, first_at, last_at, note,
	status, actor, reason, until_at, changed_at,
	(SELECT count(*) FROM portico_samples WHERE portico_samples.signature = portico_findings.signature)
	FROM portico_findings`

// scanFinding reads one row. What was accepted for a time that is over is open
// since then.
func scanFinding(scan scanner, now time.Time) (Finding, error) {
	var f Finding
	var first, last, until, changed int64
	err := scan(&f.Signature, &f.Operation, &f.Class, &f.Path, &f.Kind, &f.Count, &first, &last, &f.Note,
		&f.Status, &f.Actor, &f.Reason, &until, &changed, &f.Samples)
	f.First, f.Last, f.Until, f.Changed = fromMicros(first), fromMicros(last), fromMicros(until), fromMicros(changed)
	if f.Status == StatusAccepted && until != 0 && !f.Until.After(now) {
		f.Status, f.Changed = StatusOpen, f.Until
	}
	return f, err
}

// Findings gives all findings: those that are open first, and of those the most
// frequent first.
func (s *Store) Findings(ctx context.Context) ([]Finding, error) {
	now := s.now()
	all, err := list(ctx, s.read(), func(scan scanner) (Finding, error) { return scanFinding(scan, now) }, selectFindings)
	if err == nil {
		err = s.readScopes(ctx, all)
	}
	if err != nil {
		return nil, s.failed("reading the findings", err)
	}
	rank := map[FindingStatus]int{StatusAccepted: 1, StatusFixed: 2}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Status], rank[b.Status]), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Signature, b.Signature))
	})
	return all, nil
}

// Finding gives one finding with its samples, the latest first. The error is
// ErrNotFound when there is none.
func (s *Store) Finding(ctx context.Context, signature string) (Finding, []Sample, error) {
	signature = name(signature)
	f, err := scanFinding(s.read().row(ctx, selectFindings+" WHERE signature = ?", signature).Scan, s.now())
	if err != nil {
		return Finding{}, nil, s.failed("reading a finding", err)
	}
	samples, err := list(ctx, s.read(), func(scan scanner) (sample Sample, err error) {
		var at int64
		err = scan(&sample.ID, &at, &sample.Text)
		sample.Signature, sample.At = signature, fromMicros(at)
		return sample, err
	}, "SELECT id, at, content FROM portico_samples WHERE signature = ? ORDER BY at DESC, id DESC", signature)
	if err != nil {
		return Finding{}, nil, s.failed("reading the samples of a finding", err)
	}
	f.Samples = len(samples)
	one := []Finding{f}
	err = s.readScopes(ctx, one)
	return one[0], samples, s.failed("reading the scopes of a finding", err)
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
	now := s.now()
	return s.write(ctx, "judging a finding", func(tx session) error {
		changed, err := tx.exec(ctx, `UPDATE portico_findings SET status = ?, actor = ?, reason = ?, until_at = ?, changed_at = ? WHERE signature = ?`,
			string(status), clean(actor), clean(reason), micros(until), micros(now), name(signature))
		if err == nil && changed == 0 {
			err = ErrNotFound
		}
		if err == nil && status == StatusFixed {
			err = tx.beginEvidence(ctx, name(signature), now)
		}
		if err != nil {
			return err
		}
		return tx.append(ctx, Record{At: now, Actor: actor, Action: "finding." + string(status), Subject: signature, Reason: reason, Detail: detail})
	})
}
