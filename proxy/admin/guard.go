package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard requires the token or a certificate if the options ask for one. It refuses changes from pages of other origins, and
// any access through a foreign name if neither is required.
func (s *Server) guard(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.authorized(r):
			w.Header().Set("Www-Authenticate", `Basic realm="Portico", charset="UTF-8"`)
			if r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // or net/http would wait for the body
			}
			plain(w, http.StatusUnauthorized, "this needs the token of the admin listener, or a client certificate where it takes them")
		case s.open() && !localName(r.Host):
			plain(w, http.StatusForbidden, "without a token this listener can be reached by an address or a name without dots only")
		case sameOrigin.Check(r) != nil:
			plain(w, http.StatusForbidden, "changes are made from the pages of this listener, or by no browser at all")
		default:
			s.options.Looked()
			next.ServeHTTP(w, r)
		}
	})
}

// open reports whether neither a token nor a certificate is required.
func (s *Server) open() bool { return s.options.Token == "" && !s.options.Certificates }

// authorized reports whether a request has a verified client certificate or the token. It compares digests, so that the time
// does not depend on the token's length.
func (s *Server) authorized(r *http.Request) bool {
	switch {
	case s.open(), s.options.Certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return true
	case s.options.Token == "":
		return false
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		_, given, _ = r.BasicAuth()
	}
	want, have := sha256.Sum256([]byte(s.options.Token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// localName reports whether a host is an address or a name without a dot. The owner of a foreign page can let any other name
// resolve to this listener, and read it through the browser of an operator.
func localName(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ".")
}

// ServeHTTP implements http.Handler. It keeps responses out of caches, frames and foreign pages.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
			"script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	} {
		w.Header().Set(name, value)
	}
	s.handler.ServeHTTP(w, r)
}
