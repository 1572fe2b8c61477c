-- Of the transient ones: the candidate gave no answer, or one that says it is broken,
-- and was fine when it was asked again.
ALTER TABLE portico_tallies ADD COLUMN failed {integer} NOT NULL DEFAULT 0;
