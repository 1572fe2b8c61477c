package transport

import "net/http"

// Trace begins to follow one call for an operator's tracing system. It gives the request to send, which may be a copy that
// carries more headers, and who is told when the call has ended; nil for the latter is a call that nobody follows.
type Trace func(req *http.Request) (*http.Request, Observer)

// Follow measures every call through next, as Measure does, and tells begin of it too. A nil observer is nobody.
func Follow(next http.RoundTripper, begin Trace, observer Observer) http.RoundTripper {
	if observer == nil {
		observer = both(nil)
	}
	return &follow{next: next, begin: begin, observer: observer}
}

type follow struct {
	next     http.RoundTripper
	begin    Trace
	observer Observer
}

// RoundTrip follows one call.
func (f *follow) RoundTrip(req *http.Request) (*http.Response, error) {
	req, follower := f.begin(req)
	observer := f.observer
	if follower != nil {
		observer = both{observer, follower}
	}
	return (&measure{next: f.next, observer: observer}).RoundTrip(req)
}

// both tells several.
type both []Observer

// Observe implements Observer.
func (b both) Observe(s Sample) {
	for _, each := range b {
		each.Observe(s)
	}
}
