// Package transport is the transport of the HTTP client of one tracker. Stack measures each call, bounds how many run at a time, repeats
// reads, stops while the tracker fails, and speaks HTTP/1.1 as ARCHITECTURE.md and tracker-behaviour.md section 1 ask for.
//
// Nothing in here knows what is asked. What a call is named, and whether a POST only reads, travels in its context (With, Call).
// Every failure is an *Error, also through *url.Error.
package transport
