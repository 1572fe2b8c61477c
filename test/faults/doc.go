// Package faults loads real processes while trackers, networks, Redis and Portico itself fail, and checks every word
// that a client was told against what the tracker did.
package faults
