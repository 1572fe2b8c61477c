// Package proxy is the front of house: it speaks HTTP with legacy clients as interface.md and real trackers do, and hands
// each of the seven operations to an upstream.Tracker.
package proxy
