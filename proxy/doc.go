// Package proxy speaks HTTP with legacy clients: it routes and decodes requests, hands each of the seven operations to an
// upstream.Tracker, renders replies and errors, and streams everything else to a tracker. The contract with clients is
// docs/reference/interface.md; where that is silent, docs/reference/tracker-behaviour.md.
package proxy
