// Package tracker is the reference tracker: a Bugzilla-style server over HTTP that stands in for a real one
// and behaves as tracker-behaviour.md records of Bugzilla 5.2 (dialect "bugzilla-5"), of BMO ("bmo") and of Harmony ("harmony").
//
// It is an independent implementation on purpose: it shares no code with the facade that is tested against it.
// State lives in memory, every write is one transaction (all or nothing), and identifiers taken by a transaction
// that is rolled back are not given out again, as in the database behind the recordings.
//
// Besides the interface it has four endpoints of its own: GET /_tracker/journal lists the executed writes,
// GET /_tracker/requests counts requests per operation, POST /_tracker/reset puts the seed back,
// POST /_tracker/faults replaces the faults and POST /_tracker/quirks the quirks.
//
// A second server may follow a first one: both show the same data, each in its own odd way, and each keeps a journal
// of the writes that were made through it.
package tracker
