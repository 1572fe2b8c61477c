-- Each response with an id that may be that of a copy asks which copies its tracker is getting, so that this must not read all that waits.
CREATE INDEX portico_journal_copying ON portico_journal (receiver) WHERE attempt IS NOT NULL;
