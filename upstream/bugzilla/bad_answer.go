package bugzilla

import (
	"net/http"
	"time"

	"portico/mapping"
	"portico/upstream/transport"
)

// badAnswer says what was wrong with an answer that is not the tracker's JSON.
type badAnswer struct {
	text string
	// unavailable is when to ask again, where the answer says that the tracker is away for a while.
	unavailable time.Duration
}

func bad(text string) *badAnswer { return &badAnswer{text: text} }

// Error implements error.
func (e *badAnswer) Error() string { return e.text }

// misunderstood judges an answer that is not the tracker's JSON. With a status of 4xx it is an answer all the same, of a
// web server or a gateway before the tracker, and nothing was done (DESIGN.md section 7). A client can bring such
// answers about at will, so they must not open the breaker for the others. Everything else is a failure of the tracker.
func misunderstood(response *http.Response, answer *badAnswer) error {
	if response.StatusCode >= 400 && response.StatusCode < 500 {
		refused := mapping.RefusedByServer(response.StatusCode)
		refused.Err = answer
		return refused
	}
	transport.Fail(response.Body, answer)
	if response.StatusCode == http.StatusServiceUnavailable {
		answer.unavailable = retryAfter(response.Header)
	}
	return answer
}
