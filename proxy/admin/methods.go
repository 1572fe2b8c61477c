package admin

import (
	"net/http"
	"strings"
)

// Offer serves what mux has patterns for. Anything else is answered by refuse: with 405 where the path takes other methods,
// which stand in Allow by then, and with 404 where it takes none.
func Offer(mux *http.ServeMux, refuse func(w http.ResponseWriter, r *http.Request, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if offered(mux, r, r.Method) {
			mux.ServeHTTP(w, r)
			return
		}
		var takes []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			if offered(mux, r, method) {
				takes = append(takes, method)
			}
		}
		if len(takes) == 0 {
			refuse(w, r, http.StatusNotFound)
			return
		}
		w.Header().Set("Allow", strings.Join(takes, ", "))
		refuse(w, r, http.StatusMethodNotAllowed)
	})
}

// offered tells whether mux has a pattern for the path of a request with a method.
func offered(mux *http.ServeMux, r *http.Request, method string) bool {
	asked := *r
	asked.Method = method
	_, pattern := mux.Handler(&asked)
	return pattern != ""
}

// looked answers requests that only look. It stands before the guard, which would ask for a token first.
func looked(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			answer(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		plain(w, http.StatusMethodNotAllowed, "there is nothing to change here")
	})
}
