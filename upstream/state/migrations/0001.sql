-- Times are microseconds since 1970 in UTC, 0 is none.

CREATE TABLE portico_findings (
	signature TEXT PRIMARY KEY,
	operation TEXT NOT NULL,
	class TEXT NOT NULL,
	path TEXT NOT NULL,
	kind TEXT NOT NULL,
	seen {integer} NOT NULL,
	first_at {integer} NOT NULL,
	last_at {integer} NOT NULL,
	note TEXT NOT NULL,
	status TEXT NOT NULL,
	actor TEXT NOT NULL DEFAULT '',
	reason TEXT NOT NULL DEFAULT '',
	until_at {integer} NOT NULL DEFAULT 0,
	changed_at {integer} NOT NULL,
	offered {integer} NOT NULL DEFAULT 0 -- how many samples were given, kept or not
);

CREATE TABLE portico_samples (
	id {serial},
	signature TEXT NOT NULL REFERENCES portico_findings (signature) ON DELETE CASCADE,
	at {integer} NOT NULL,
	content {bytes} NOT NULL
);
CREATE INDEX portico_samples_signature ON portico_samples (signature);

-- Reasons and histograms are JSON that is merged under the row's lock: a row for
-- each bucket would make millions of them in a month.
CREATE TABLE portico_tallies (
	minute {integer} NOT NULL,
	answered TEXT NOT NULL,
	other TEXT NOT NULL,
	operation TEXT NOT NULL,
	compared {integer} NOT NULL,
	same {integer} NOT NULL,
	noisy {integer} NOT NULL,
	transient {integer} NOT NULL,
	confirmed {integer} NOT NULL,
	accepted {integer} NOT NULL,
	dropped TEXT NOT NULL DEFAULT '{}',
	answered_latency TEXT NOT NULL DEFAULT '[]',
	other_latency TEXT NOT NULL DEFAULT '[]',
	PRIMARY KEY (minute, answered, other, operation)
);

CREATE TABLE portico_rule_uses (
	name TEXT PRIMARY KEY,
	hits {integer} NOT NULL,
	last_at {integer} NOT NULL
);

-- One row, which those who change what belongs to a campaign lock first.
CREATE TABLE portico_campaign (
	id {integer} PRIMARY KEY CHECK (id = 1),
	started_at {integer} NOT NULL,
	actor TEXT NOT NULL,
	reason TEXT NOT NULL
);
INSERT INTO portico_campaign (id, started_at, actor, reason) VALUES (1, {now}, '', '');

CREATE TABLE portico_revisions (
	version {integer} PRIMARY KEY,
	base TEXT NOT NULL,
	source TEXT NOT NULL,
	content {bytes} NOT NULL,
	actor TEXT NOT NULL,
	reason TEXT NOT NULL,
	at {integer} NOT NULL
);

CREATE TABLE portico_audit (
	id {serial},
	at {integer} NOT NULL,
	actor TEXT NOT NULL,
	action TEXT NOT NULL,
	subject TEXT NOT NULL,
	reason TEXT NOT NULL,
	detail {bytes}
);

CREATE TABLE portico_creates (
	fingerprint {bytes} PRIMARY KEY,
	content {bytes} NOT NULL,
	begun_at {integer} NOT NULL,
	running {integer} NOT NULL,
	body {bytes},
	failed TEXT
);
CREATE INDEX portico_creates_begun ON portico_creates (begun_at);

CREATE TABLE portico_secrets (
	name TEXT PRIMARY KEY,
	secret {bytes} NOT NULL
);
