// Package clients drives real clients of Bugzilla, as Debian packages them, through Portico to the reference tracker. All are programs:
// the clients, Portico and the tracker.
package clients
