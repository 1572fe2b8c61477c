-- Writes that one tracker has and that are not copied to the receiver, one row for each kind of write.
CREATE TABLE portico_journal_losses (
	receiver TEXT NOT NULL,
	rule TEXT NOT NULL, -- empty for what passes through
	kind TEXT NOT NULL,
	what TEXT NOT NULL,
	entries {integer} NOT NULL,
	first_at {integer} NOT NULL,
	last_at {integer} NOT NULL,
	PRIMARY KEY (receiver, rule, kind, what)
);
