// Package journal records writes of one tracker and copies them to another one. An intent is committed before the tracker is asked, and the outcome before
// the client is told, so that an acknowledged write is copied exactly once or is parked with a reason. docs/migration.md
// says what operators may rely on.
package journal
