// Package canary drives the comparison of two trackers, and recordings, through
// real processes, as somebody at a command line does.
package canary
