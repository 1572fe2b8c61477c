package proxy

import "net/http"

// Patient gives the clients of another handler the same pauses as a Server gives its own, and no more.
func Patient(next http.Handler, pause ClientPause) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watched := newRecorder(w, pause.Taking)
		if r.Body != nil && r.Body != http.NoBody {
			watched.body = &pausedBody{ReadCloser: r.Body, control: watched.control, pause: pause.Sending}
			defer watched.leave()
			r.Body = watched.body
		}
		next.ServeHTTP(watched, r)
	})
}
