// Package migration moves a product and a share of the callers of a real
// Portico process from one reference tracker to another under load, and back,
// and checks from the trackers' own journals what became of every write.
package migration
