package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard lets those in who show the token or a certificate, if they are asked for, and lets nobody change anything, or look
// where nothing is asked for, from a page of somebody else.
func (s *Server) guard(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.knows(r):
			w.Header().Set("Www-Authenticate", `Basic realm="Portico", charset="UTF-8"`)
			if r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // or net/http would wait for the body
			}
			plain(w, http.StatusUnauthorized, "this needs the token of the admin listener, or a client certificate where it takes them")
		case s.open() && !localName(r.Host):
			plain(w, http.StatusForbidden, "without a token this listener answers under an address or a name without dots only")
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			next.ServeHTTP(w, r)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			plain(w, http.StatusMethodNotAllowed, "changes are made by POST")
		case sameOrigin.Check(r) != nil:
			plain(w, http.StatusForbidden, "changes are made from the pages of this listener, or by no browser at all")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// open tells whether nothing is asked for.
func (s *Server) open() bool { return s.options.Token == "" && !s.options.Certificates }

// knows tells whether a request comes with a client certificate that was checked, or shows the token. Digests are compared,
// so that the time tells nothing about its length.
func (s *Server) knows(r *http.Request) bool {
	switch {
	case s.open(), s.options.Certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return true
	case s.options.Token == "":
		return false
	}
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		_, shown, _ = r.BasicAuth()
	}
	want, have := sha256.Sum256([]byte(s.options.Token)), sha256.Sum256([]byte(strings.TrimSpace(shown)))
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// localName tells a host that nobody outside can point at this listener: an address, or a name without a dot. A foreign
// page could otherwise reach a listener without a token through a name of its own that leads here.
func localName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return !strings.Contains(name, ".")
}

// withHeaders keeps what is shown out of caches, frames and other people's pages.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "+
			"script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}
