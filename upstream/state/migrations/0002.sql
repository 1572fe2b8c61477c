-- Mismatches are JSON as drops are: how many comparisons had just these confirmed
-- findings, by their signatures. Of older ones nobody knows which they were.
ALTER TABLE portico_tallies ADD COLUMN mismatches TEXT NOT NULL DEFAULT '{}';
UPDATE portico_tallies SET mismatches = '{"*":' || CAST(confirmed AS TEXT) || '}' WHERE confirmed > 0;

-- Since when the comparisons of an operation count, where that is later than the
-- campaign: somebody has called one of its findings fixed.
CREATE TABLE portico_evidence (
	operation TEXT PRIMARY KEY,
	since {integer} NOT NULL
);
INSERT INTO portico_evidence (operation, since)
	SELECT operation, MAX(changed_at) FROM portico_findings WHERE status = 'fixed' GROUP BY operation;
