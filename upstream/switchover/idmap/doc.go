// Package idmap makes one id space of two trackers that have the same objects under different ids and names. Clients see one id for
// each object, the first one that they were shown; trackers only receive their own ids. Tracker and Locator translate what passes
// between the switchover and one tracker. docs/migration.md says what operators may rely on.
package idmap
