// Package cache is a Tracker decorator that serves flag type reads from Redis and from the memory of this process.
//
// Redis is shared by all processes; before it, each process keeps entries for at most Options.LocalTTL. An entry is used only
// under the state in which the tracker was asked for it, which Redis holds: the generation of the tracker, which every flag
// type write replaces; the generation of the product, which a purge replaces; and the sum of the pending writes. So a read
// that began before a write never refills the cache with what was there before. A process that could not tell Redis of a
// change does not use Redis until it has.
//
// An entry belongs to a scope, the callers who may share it: one credential or, where the configuration says so, all who are in the
// same groups of the tracker (sharedScope).
//
// A Redis that is slow, away, full, empty or behind costs hits and nothing else: such a read asks the tracker.
package cache
