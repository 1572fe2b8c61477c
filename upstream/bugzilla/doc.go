// Package bugzilla is an upstream.Tracker over one Bugzilla-style server, speaking the dialects of wire-facts.md sections 1 to 9 over HTTP.
package bugzilla
