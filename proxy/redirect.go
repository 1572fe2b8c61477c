package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// redirect turns redirects to the tracker's own name into redirects to the name that the client used, which would
// otherwise be led past Portico.
func (t *Target) redirect(response *http.Response) {
	header := response.Header
	if location := header.Get("Location"); location != "" {
		header.Set("Location", t.fromTracker(response.Request, location))
	}
	delay, target, found := strings.Cut(header.Get("Refresh"), "=")
	if found && strings.HasSuffix(strings.ToLower(strings.TrimSpace(delay)), "url") {
		header.Set("Refresh", delay+"="+t.fromTracker(response.Request, strings.Trim(strings.TrimSpace(target), `"'`)))
	}
}

// fromTracker gives an address of the tracker as the client must write it; other addresses stay. The request is the one
// that was sent to the tracker: it says how the client names Portico.
func (t *Target) fromTracker(sent *http.Request, address string) string {
	target, err := url.Parse(address)
	if err != nil || target.Opaque != "" || target.Scheme != "" && target.Scheme != "http" && target.Scheme != "https" {
		return address
	}
	if target.Host != "" && !t.namesTracker(target) {
		return address
	}
	path, ours := t.belowBase(target.EscapedPath())
	if !ours {
		return address
	}
	setEscapedPath(target, path)
	if target.Host != "" {
		target.Scheme = sent.Header.Get("X-Forwarded-Proto")
		target.Host = sent.Header.Get("X-Forwarded-Host")
	}
	return target.String()
}

// namesTracker tells whether the host of an address is one of the tracker's.
func (t *Target) namesTracker(target *url.URL) bool {
	for _, name := range append([]string{t.Base.Host}, t.Names...) {
		if strings.EqualFold(hostAndPort(target), hostAndPort(&url.URL{Scheme: target.Scheme, Host: name})) {
			return true
		}
	}
	return false
}

func hostAndPort(address *url.URL) string {
	port := address.Port()
	if port == "" && address.Scheme == "https" {
		port = "443"
	} else if port == "" {
		port = "80"
	}
	return address.Hostname() + ":" + port
}

// belowBase takes the path of the tracker's front page off. A relative path stays as it is.
func (t *Target) belowBase(path string) (rest string, ours bool) {
	base := strings.TrimSuffix(t.Base.EscapedPath(), "/")
	if base == "" || !strings.HasPrefix(path, "/") {
		return path, true
	}
	rest, ours = strings.CutPrefix(path, base)
	if rest == "" {
		rest = "/"
	}
	return rest, ours && rest[0] == '/'
}
