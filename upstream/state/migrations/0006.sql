-- For which callers and products a finding was seen. Either may be empty: a caller without a name, a call that names no product.
CREATE TABLE portico_finding_scopes (
	signature TEXT NOT NULL REFERENCES portico_findings (signature) ON DELETE CASCADE,
	caller TEXT NOT NULL,
	product TEXT NOT NULL,
	PRIMARY KEY (signature, caller, product)
);
