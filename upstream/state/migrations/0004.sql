-- Ids of objects that two trackers have under different ids: the one that clients know, and that at one of the trackers. Rows are
-- never changed.
CREATE TABLE portico_ids (
	kind TEXT NOT NULL,
	client {integer} NOT NULL,
	side TEXT NOT NULL,
	native {integer} NOT NULL,
	PRIMARY KEY (kind, client)
);
CREATE UNIQUE INDEX portico_ids_native ON portico_ids (kind, side, native);
