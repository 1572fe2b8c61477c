-- An index that a write of the journal must not change costs it nothing: only what waits is looked for by its object, only what is finished by its end.
DROP INDEX portico_journal_lane;
DROP INDEX portico_journal_status;
DROP INDEX portico_journal_made;
CREATE INDEX portico_journal_open ON portico_journal (lane, seq) WHERE status IN ('begun', 'pending', 'parked');
CREATE INDEX portico_journal_ended ON portico_journal (ended_at) WHERE ended_at > 0;
CREATE INDEX portico_journal_creates ON portico_journal (made, seq) WHERE made <> '';
CREATE INDEX portico_journal_parked ON portico_journal (lane, seq) WHERE status = 'parked';
