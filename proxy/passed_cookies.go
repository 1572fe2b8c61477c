package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"portico/mapping"
)

// cookies gives the cookies of an answer a path and a host that the client's address has. Those of the tracker's own address
// would be refused by the client, or never come back.
func (t *Target) cookies(response *http.Response) {
	lines := response.Header["Set-Cookie"]
	for i, line := range lines {
		lines[i] = t.cookie(response.Request.Header.Get("X-Forwarded-Host"), line)
	}
}

// setCookies does the same for those of an operation. Only the answer knows which of several trackers it is from.
func (x *exchange) setCookies(from *mapping.Document) {
	_, host := x.server.trusted.origin(x.r)
	for _, line := range from.Cookies {
		if from.Tracker != nil {
			line = (&Target{Base: from.Tracker, Names: x.server.usual.Names}).cookie(host, line)
		}
		x.w.Header().Add("Set-Cookie", line)
	}
}

// cookie rewrites one cookie for a client that names Portico host. What it says besides stays as it is written.
func (t *Target) cookie(host, line string) string {
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
			if t.isForeign(host, value) {
				continue
			}
		}
		kept = append(kept, attribute)
	}
	return strings.Join(kept, ";")
}

// isForeign tells whether a domain is the tracker's and not that of the host by which the client names Portico.
func (t *Target) isForeign(host, domain string) bool {
	domain = strings.TrimPrefix(domain, ".")
	if domain == "" || isWithin((&url.URL{Host: host}).Hostname(), domain) {
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
