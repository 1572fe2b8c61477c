// Package transport holds the mechanics inside the HTTP client of one tracker as a chain of http.RoundTrippers
// (Measure, Retry, Limit, Break over Base), and speaks HTTP/1.1 as DESIGN.md section 7 and wire-facts.md section 1 ask for.
//
// Nothing in here knows what is asked. What a call is named, and whether a POST only reads, travels in the context
// (WithOperation, WithRead, WithShadow, WithWrite, WithStream). Every failure is an *Error, also through *url.Error.
package transport
