// Package bugzilla is an upstream.Tracker over one Bugzilla-style server, speaking the dialects of tracker-behaviour.md sections 1 to 9 over HTTP.
package bugzilla
