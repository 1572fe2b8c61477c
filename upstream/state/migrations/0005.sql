-- Writes that are copied to the other tracker, one row for each object. A lane is the object; its rows are copied in the order of seq.
CREATE TABLE portico_journal (
	seq {serial},
	lane TEXT NOT NULL,
	made TEXT NOT NULL DEFAULT '', -- the lane of the object that the write has created
	operation TEXT NOT NULL,
	target TEXT NOT NULL,
	receiver TEXT NOT NULL,
	rule TEXT NOT NULL,
	caller TEXT NOT NULL,
	status TEXT NOT NULL,
	reason TEXT NOT NULL DEFAULT '',
	attempts {integer} NOT NULL DEFAULT 0,
	next_at {integer} NOT NULL DEFAULT 0,
	begun_at {integer} NOT NULL,
	ended_at {integer} NOT NULL DEFAULT 0,
	request {bytes}, -- encrypted
	spool TEXT NOT NULL DEFAULT '',
	attempt {bytes}
);
CREATE INDEX portico_journal_lane ON portico_journal (lane, status, seq);
CREATE INDEX portico_journal_status ON portico_journal (status, ended_at);
CREATE INDEX portico_journal_made ON portico_journal (made, status);

-- A lease is held until its time is over.
CREATE TABLE portico_leases (
	name TEXT PRIMARY KEY,
	holder TEXT NOT NULL,
	until_at {integer} NOT NULL
);

-- One row: whether copying is paused.
CREATE TABLE portico_journal_pause (
	id {integer} PRIMARY KEY CHECK (id = 1),
	paused {integer} NOT NULL
);
INSERT INTO portico_journal_pause (id, paused) VALUES (1, 0);
