package transport

import (
	"net/http"
	"time"
)

// Sample is one finished call as its caller saw it, retries included.
type Sample struct {
	Operation string
	Method    string
	Class     Class
	Status    int           // 0 when there was no answer
	Reason    Reason        // "" when a whole answer came, whatever its status, or its reader closed it by choice
	Unknown   bool          // the outcome of a write is not known
	Tries     int           // requests that reached Limit, and those that net/http sent again; 0 when Retry is not in the chain
	Headers   time.Duration // to the answer's header, or to the error
	Total     time.Duration // to the end of the answer's body
	BytesIn   int64         // of the answer's body
	BytesOut  int64         // of request bodies, every try
}

// Observer learns about every call, once, when its body has ended. Observe must not block; it runs in the
// goroutine that read or closed the body, or in one of its own when the call's context ended first.
type Observer interface {
	Observe(Sample)
}

// Measure tells observer about every call through next.
func Measure(next http.RoundTripper, observer Observer) http.RoundTripper {
	return &measure{next: next, observer: observer}
}

type measure struct {
	next     http.RoundTripper
	observer Observer
}

// RoundTrip measures one call.
func (m *measure) RoundTrip(req *http.Request) (*http.Response, error) {
	begun := Begun(req.Context())
	req, t := tallied(req)
	s := Sample{Operation: Operation(req.Context()), Method: req.Method, Class: ClassOf(req)}
	resp, err := m.next.RoundTrip(req)
	s.Headers = time.Since(begun)
	if err != nil {
		s.Total = s.Headers
		m.report(s, t, err)
		return nil, err
	}
	s.Status = resp.StatusCode
	watch(req.Context(), resp, true, func(e ending) {
		s.Total, s.BytesIn = s.Headers+e.lasted, e.bytes
		m.report(s, t, e.err)
	})
	return resp, nil
}

// tallied gives the request with a tally of its own: one context may be that of several calls.
func tallied(req *http.Request) (*http.Request, *tally) {
	if t := marksOf(req.Context()).tally; t != nil && t.taken.CompareAndSwap(false, true) {
		return req, t
	}
	t := &tally{}
	t.taken.Store(true)
	return req.WithContext(mark(req.Context(), func(k *marks) { k.tally = t })), t
}

func (m *measure) report(s Sample, t *tally, err error) {
	s.Reason, s.Unknown = ReasonOf(err), OutcomeUnknown(err)
	s.Tries, s.BytesOut = int(t.tries.Load()), t.out.Load()
	m.observer.Observe(s)
}
