package proxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"portico/upstream"
)

// rewrite makes the tracker's request of the client's. Hop-by-hop headers, those that Connection names among them, are
// gone already.
func (s *Server) rewrite(pass *httputil.ProxyRequest) {
	target := passingOf(pass.In).target
	base := target.Base
	in, out := pass.In, pass.Out
	out.URL = &url.URL{Scheme: base.Scheme, Host: base.Host, RawQuery: in.URL.RawQuery}
	setEscapedPath(out.URL, strings.TrimSuffix(base.EscapedPath(), "/")+in.URL.Path)
	out.Host = base.Host
	// net/http would send a POST with one of these twice on a connection that breaks.
	out.Header.Del("Idempotency-Key")
	out.Header.Del("X-Idempotency-Key")
	out.Header.Del("Upgrade")
	out.Header.Del("Connection")
	// Servers that heed these would take another path than the one that was allowed to pass.
	out.Header.Del("X-Original-Url")
	out.Header.Del("X-Rewrite-Url")
	out.Header.Del("Expect") // the body is here already
	out.Header.Set(headerRequestID, RequestID(in.Context()))
	if passingOf(in).changesFlagTypes {
		out.Header.Set("Accept-Encoding", "identity") // since its answer is read here, too
	}
	s.setForwarded(in, out)
	target.setCredentials(in, out)
}

// setEscapedPath keeps the escapes of a path as they are.
func setEscapedPath(address *url.URL, escaped string) {
	plain, err := url.PathUnescape(escaped)
	if err != nil { // a normal path has none but good escapes
		plain = escaped
	}
	address.Path, address.RawPath = plain, escaped
}

// setForwarded tells the tracker who asks. What the client says of that counts only if it is a trusted proxy.
func (s *Server) setForwarded(in, out *http.Request) {
	s.trusted.clean(in, out.Header)
	peer, _, err := net.SplitHostPort(in.RemoteAddr)
	if err != nil {
		peer = in.RemoteAddr
	}
	chain := []string{peer}
	if s.trusted.peerTrusted(in) {
		chain = append(in.Header.Values("X-Forwarded-For"), peer)
	}
	scheme, host := s.trusted.origin(in)
	out.Header.Set("X-Forwarded-For", strings.Join(chain, ", "))
	out.Header.Set("X-Forwarded-Proto", scheme)
	out.Header.Set("X-Forwarded-Host", host)
}

// isREST tells whether a path belongs to the REST interface.
func isREST(path string) bool {
	return strings.HasPrefix(path, "/rest/") || strings.HasPrefix(path, "/rest.cgi/")
}

// setCredentials gives header credentials as parameters to a tracker that does not read headers (clients.md, section 4, row
// 5). As for the seven operations, the query beats the body and the body beats the headers, each kind for itself.
func (t *Target) setCredentials(in, out *http.Request) {
	reads := t.HeaderCredentials
	if reads == nil || !isREST(in.URL.Path) || reads(in.Context()) {
		return
	}
	var found upstream.Credentials
	addHeaders(&found, in.Header)
	query, _ := parseQuery(in.URL.RawQuery)
	body := passingOf(in).credentials
	for _, form := range []credentialForm{credentialNames[:1], credentialNames[1:3], credentialNames[3:]} {
		shown := form.shownBy(query, body)
		for _, kind := range form {
			value := *kind.field(&found)
			if shown || value != "" {
				out.URL.RawQuery = kind.withoutBlank(out.URL.RawQuery)
			}
			if !shown && value != "" {
				out.URL.RawQuery = joinQuery(out.URL.RawQuery, kind.names[form.nameBeside(body)], value)
			}
		}
	}
}

// withoutBlank leaves out parameters of that kind without a value. A tracker would take such a one for the credential,
// and the caller for nobody.
func (k credentialKind) withoutBlank(query string) string {
	var kept []string
	for piece := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		list, _ := parseQuery(piece)
		if !slices.Contains(k.names, list[0].name) || k.text(list[0].value) != "" {
			kept = append(kept, piece)
		}
	}
	if short := strings.Join(kept, "&"); len(short) < len(query) {
		return short
	}
	return query
}

func joinQuery(query, name, value string) string {
	if query != "" {
		query += "&"
	}
	return query + name + "=" + url.QueryEscape(value)
}
