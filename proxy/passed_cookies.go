package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// cookies gives the cookies of an answer a path and a host that the client's address has. Those of the tracker's own address
// would be refused by the client, or never come back.
func (t *Target) cookies(response *http.Response) {
	lines := response.Header["Set-Cookie"]
	for i, line := range lines {
		lines[i] = t.cookie(response.Request, line)
	}
}

// cookie rewrites one cookie. What it says besides stays as it is written.
func (t *Target) cookie(sent *http.Request, line string) string {
	parts := strings.Split(line, ";")
	kept := parts[:1]
	for _, attribute := range parts[1:] {
		name, value, _ := strings.Cut(attribute, "=")
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "path":
			if path, ours := t.belowBase(value); ours && path != value {
				attribute = name + "=" + path
			}
		case "domain":
			if t.isForeign(sent, value) {
				continue
			}
		}
		kept = append(kept, attribute)
	}
	return strings.Join(kept, ";")
}

// isForeign tells whether a domain is the tracker's and not that of the name that the client uses. The request is the one
// that was sent to the tracker: it says how the client names Portico.
func (t *Target) isForeign(sent *http.Request, domain string) bool {
	domain = strings.TrimPrefix(domain, ".")
	if domain == "" || isWithin((&url.URL{Host: sent.Header.Get("X-Forwarded-Host")}).Hostname(), domain) {
		return false
	}
	for _, name := range append([]string{t.Base.Host}, t.Names...) {
		if isWithin((&url.URL{Host: name}).Hostname(), domain) {
			return true
		}
	}
	return false
}

// isWithin tells whether a host is a domain itself or below it.
func isWithin(host, domain string) bool {
	host, domain = strings.ToLower(host), strings.ToLower(domain)
	return host == domain || strings.HasSuffix(host, "."+domain)
}
