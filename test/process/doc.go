// Package process builds Portico and runs it, the reference tracker and Redis
// as programs of their own, for tests that need what only real processes do.
package process
