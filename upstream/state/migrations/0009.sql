-- The tracker to which a kill of the rules has sent all writes, until copies to it are parked: later writes there must not be overwritten.
ALTER TABLE portico_journal_pause ADD COLUMN killed_to TEXT NOT NULL DEFAULT '';
