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
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap()
	}
	return address.String()
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

// lastItem gives the last item of a list, which the nearest proxy added.
func lastItem(list string) string {
	items := strings.Split(list, ",")
	return strings.TrimSpace(items[len(items)-1])
}
