package proxy

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// Target is a tracker that paths outside the interface can stream through to.
type Target struct {
	// Base is the address of the tracker's front page.
	Base *url.URL
	// Transport carries the requests. It must leave bodies as they are, so it must not ask for compression by itself.
	Transport http.RoundTripper
	// Names are hosts, with a port where it is unusual, that the tracker calls itself besides that of Base. Redirects to
	// them are changed to the name that the client used.
	Names []string
	// Dialect returns the tracker's dialect, and may ask the tracker for it. Where the tracker reads no credentials in headers, those
	// of REST requests are given as query parameters too. Nil means that it does, and that it was found at Base.
	Dialect func(context.Context) mapping.Dialect
	// MaxBody returns the size in bytes of the largest request body that the tracker takes; 0, or a nil function, means that
	// there is no limit.
	MaxBody func(context.Context) int64
	// For marks the context of a request with its operation and caller, for the transport, and says of one by a method that only reads whether it
	// may change flag types nevertheless: the administrators' page takes links for forms. The transport must not send it twice. Nil does
	// nothing.
	For func(ctx context.Context, operation mapping.Operation, caller upstream.Caller, writes bool) context.Context
	// Keys returns the caller as the tracker is to see it, or the error of a request that must not be sent. Nil changes nothing, and passes
	// credentials in the bodies of the older interfaces, which are refused otherwise.
	Keys func(upstream.Caller) (upstream.Caller, error)
	// Check returns the error of a request that must not pass, because it would mean another object there than to the client.
	// query returns the values of a parameter as a tracker reads them. isOperation says that it is an operation in the form of an older interface.
	// Nil lets all pass.
	Check func(ctx context.Context, path string, query func(name string) []string, isOperation bool) error
}

// setPath sets the path of the request. A tracker often lives below a path, such as /bugzilla. Clients that were pointed at
// http://tracker/bugzilla/ keep that path when only the host changes, so everything is reachable below the tracker's own path and
// at the root. Below a path that the tracker was found at, pages keep it, since the tracker's address does not have it.
func (rc *requestContext) setPath(path string) {
	rc.path = path
	target := &rc.server.options.Passthrough.Target
	if target.Base == nil {
		return
	}
	base := target.basePath()
	if rest, ours := target.belowBase(path); ours {
		rc.path, rc.prefix = rest, base
	}
	// Dialect may have to ask the tracker, so paths that cannot be meant do not wait for that.
	if base != "" || target.Dialect == nil || isREST(path) || strings.Count(path, "/") < 2 && !strings.Contains(path, "%") {
		return
	}
	below := target.Dialect(rc.r.Context()).Below()
	rest, found := strings.CutPrefix(path, below)
	if below != "" && found && (strings.HasPrefix(rest, "/") && isBelow(rest) || misread(rest, true)) {
		rc.path = rest
	}
}

// basePath is the path of the tracker's address without a slash at its end.
func (t *Target) basePath() string { return strings.TrimSuffix(t.Base.EscapedPath(), "/") }

// isBelow reports whether a path is one of those that Portico sends below the path that the tracker was found at: REST and the older
// interfaces. Pages stay where the client asks for them.
func isBelow(path string) bool {
	return isREST(path) || bugzilla.ChangesFlagTypes(bugzilla.Script(path))
}

// belowBase removes the path of the tracker's address. A relative path stays as it is. ours is false where the path is outside.
func (t *Target) belowBase(path string) (rest string, ours bool) {
	base := t.basePath()
	if base == "" || !strings.HasPrefix(path, "/") {
		return path, true
	}
	rest, ours = strings.CutPrefix(path, base)
	rest = cmp.Or(rest, "/")
	return rest, ours && rest[0] == '/'
}

// clientPath changes an escaped path on the tracker into the one that a client uses, with the prefix that the client wrote. What is
// outside the tracker's address stays as it is.
func (t *Target) clientPath(path, prefix string) (client string, ours bool) {
	rest, ours := t.belowBase(path)
	if ours && strings.HasPrefix(path, "/") {
		return prefix + rest, true
	}
	return path, ours
}

// setEscapedPath keeps the escapes of a path as they are.
func setEscapedPath(address *url.URL, escaped string) {
	address.Path, _ = url.PathUnescape(escaped) // all escapes of a normal path are valid
	address.RawPath = escaped
}

// clientAddress returns an address of the tracker as the client must write it, which names Portico host; other addresses stay.
func (t *Target) clientAddress(address, prefix, scheme, host string) string {
	target, err := url.Parse(address)
	if err != nil || target.Opaque != "" || target.Scheme != "" && target.Scheme != "http" && target.Scheme != "https" {
		return address
	}
	named := slices.ContainsFunc(append([]string{t.Base.Host}, t.Names...), func(name string) bool {
		return strings.EqualFold(upstream.HostPort(target), upstream.HostPort(&url.URL{Scheme: target.Scheme, Host: name}))
	})
	path, ours := t.clientPath(target.EscapedPath(), prefix)
	if target.Host != "" && !named || !ours {
		return address
	}
	setEscapedPath(target, path)
	if target.Host != "" {
		target.Scheme, target.Host = scheme, host
	}
	return target.String()
}

// clientCookie gives a cookie of the tracker a path that the client's address has, and no domain, so that it comes back to Portico.
func (t *Target) clientCookie(line, prefix string) string {
	return bugzilla.RewriteCookie(line, func(path string) string {
		path, _ = t.clientPath(path, prefix)
		return path
	})
}

// origin returns the scheme and host under which the client knows Portico.
func (rc *requestContext) origin() (scheme, host string) {
	scheme, host = "http", rc.r.Host
	if rc.r.TLS != nil {
		scheme = "https"
	}
	if !rc.trusted {
		return scheme, host
	}
	if forwarded := strings.ToLower(lastItem(rc.r.Header.Get("X-Forwarded-Proto"))); forwarded == "http" || forwarded == "https" {
		scheme = forwarded
	}
	return scheme, cmp.Or(lastItem(rc.r.Header.Get("X-Forwarded-Host")), host)
}

// lastItem returns the last item of a list, which the nearest proxy added.
func lastItem(list string) string {
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}
