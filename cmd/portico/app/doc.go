// Package app assembles a running Portico from a configuration, serves it and reloads it. It is the only place where components are
// joined (ARCHITECTURE.md, "The path of a request"). Build is the one assembly: Service serves what it builds, and Explain takes one
// request through the same components without sending anything.
package app
