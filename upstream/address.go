package upstream

import (
	"cmp"
	"net"
	"net/url"
)

// HostPort returns the host and the port of an http or https URL, with the usual port where it names none.
func HostPort(address *url.URL) string {
	port := "80"
	if address.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(address.Hostname(), cmp.Or(address.Port(), port))
}
