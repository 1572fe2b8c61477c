package proxy

import (
	"net/http"
	"net/netip"
	"strings"
)

// trustedProxies are the networks whose word about a client is believed.
type trustedProxies []netip.Prefix

func (t trustedProxies) contains(address netip.Addr) bool {
	for _, network := range t {
		if network.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}

// peerTrusted tells whether the request comes straight from a trusted proxy.
func (t trustedProxies) peerTrusted(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && t.contains(peer.Addr())
}

// client gives the address of the client: the peer's, or, where trusted proxies stand between, the last one in
// X-Forwarded-For that is not itself one of them.
func (t trustedProxies) client(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	address := peer.Addr().Unmap()
	if !t.contains(address) {
		return address.String()
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && t.contains(address); i-- {
		hop, known := hopAddress(strings.TrimSpace(hops[i]))
		if !known {
			break
		}
		address = hop
	}
	return address.String()
}

// hopAddress reads an item of X-Forwarded-For. Some proxies add the port, and brackets around IPv6.
func hopAddress(item string) (address netip.Addr, known bool) {
	if withPort, err := netip.ParseAddrPort(item); err == nil {
		return withPort.Addr().Unmap(), true
	}
	if inside, ok := strings.CutPrefix(item, "["); ok {
		item = strings.TrimSuffix(inside, "]")
	}
	plain, err := netip.ParseAddr(item)
	return plain.Unmap(), err == nil
}

// origin gives the scheme and host under which the client knows Portico.
func (t trustedProxies) origin(r *http.Request) (scheme, host string) {
	scheme, host = "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if !t.peerTrusted(r) {
		return scheme, host
	}
	if forwarded := strings.ToLower(lastItem(r.Header.Get("X-Forwarded-Proto"))); forwarded == "http" || forwarded == "https" {
		scheme = forwarded
	}
	return scheme, firstOf(lastItem(r.Header.Get("X-Forwarded-Host")), host)
}

// clean takes out of a header what only a trusted proxy may say of a client. Names that a web server with CGI would take for
// others, in capitals and with underscores, go whoever sends them, and so do those that turn a request into one of another
// method behind the back of who decides by the method.
func (t trustedProxies) clean(from *http.Request, header http.Header) {
	trusted := t.peerTrusted(from)
	for name := range header {
		if strings.Contains(name, "_") || name == "Proxy" || isOverride(name) || !trusted && isHearsay(name) {
			delete(header, name)
		}
	}
}

// isOverride tells headers by which some frameworks take one method for another.
func isOverride(name string) bool {
	return name == "X-Http-Method-Override" || name == "X-Http-Method" || name == "X-Method-Override"
}

// isHearsay tells headers by which proxies tell who asks and how.
func isHearsay(name string) bool {
	switch name {
	case "Forwarded", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-For", "X-Original-Host", "X-Original-Proto",
		"Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Front-End-Https", "X-Url-Scheme", "X-Host":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// lastItem gives the last item of a list, which the nearest proxy added.
func lastItem(list string) string {
	items := strings.Split(list, ",")
	return strings.TrimSpace(items[len(items)-1])
}
