// Package switchover is an upstream.Tracker over two trackers, the old and the new one. Rules with phases say which of the
// two responds to a call, so that products and callers can be moved one after the other, and back. At every moment one
// tracker takes the writes of an object. docs/migration.md says what operators may rely on.
package switchover
