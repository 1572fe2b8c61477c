// Package writes compares writes without making them twice: by the requests that two trackers would be sent for them, and by
// what both show afterwards. It also knows which writes explain a difference, and what may differ on an isolated candidate
// that gets each write a second time (docs/explanation/comparison.md, Writes). It does no I/O but the proof of isolation.
package writes
