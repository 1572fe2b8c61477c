// Package canary drives the comparison of two trackers, and recordings, through
// real processes, as an operator at a command line does.
package canary
