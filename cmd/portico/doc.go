// Command portico is a compatibility facade for Bugzilla-style trackers. Each of its commands reads the configuration or calls
// the admin listener of a running Portico, and prints what came of it; the work itself is done by the packages below.
// ARCHITECTURE.md describes the components.
package main
