package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
)

// Headers of Portico's own.
const (
	headerRequestID = "X-Request-Id"
	// headerReason names why Portico itself answered with an error, so that its errors can be told from the tracker's.
	headerReason = "Portico-Error"
)

// allowedHeaders are the request headers that a browser may send from elsewhere, as a real tracker lists them.
const allowedHeaders = "origin, content-type, accept, x-requested-with"

// preflightHeaders are those too that carry credentials (clients.md, section 4, row 19). Browsers look at the list only in
// the answer to a preflight, so everywhere else it stays the tracker's.
const preflightHeaders = allowedHeaders +
	", x-bugzilla-api-key, x-bugzilla-token, x-bugzilla-login, x-bugzilla-password, authorization"

// isPreflight tells whether a browser asks what it may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// commonHeaders are what every answer of a tracker carries (wire-facts.md, section 1, Representation).
var commonHeaders = [...]struct{ name, value string }{
	{"Access-Control-Allow-Origin", "*"},
	{"Access-Control-Allow-Headers", allowedHeaders},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "SAMEORIGIN"},
	{"X-Xss-Protection", "1; mode=block"},
}

// setCommonHeaders sets them, with one allocation for all.
func setCommonHeaders(header http.Header) {
	values := new([len(commonHeaders)]string)
	for i, each := range commonHeaders {
		values[i] = each.value
		header[each.name] = values[i : i+1 : i+1]
	}
}

// set sets a header whose name is written as net/http keeps it, which Header.Set would find out letter by letter each time.
func set(header http.Header, name, value string) { header[name] = []string{value} }

// get gives the first value of a header, its name written likewise.
func get(header http.Header, name string) string {
	if values := header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// setErrorHeaders tells Portico's own errors apart, when to come back, and how to log in: without its challenge no client answers
// a web server that asks for a login.
func setErrorHeaders(header http.Header, failed *mapping.Error) {
	if failed.Reason != "" {
		reason := string(failed.Reason)
		if failed.Unknown {
			reason += "; outcome=unknown"
		}
		header.Set(headerReason, reason)
	}
	if failed.RetryAfter > 0 {
		header.Set("Retry-After", wholeSeconds(failed.RetryAfter+time.Second-1))
	}
	for _, challenge := range failed.Challenge {
		header.Add("Www-Authenticate", challenge)
	}
}

// setCacheHeaders says how the cache came by an answer (RFC 9211, RFC 9111 section 5.1).
func setCacheHeaders(header http.Header, info *mapping.CacheInfo) {
	if info == nil {
		return
	}
	status := append(make([]byte, 0, 96), "Portico"...)
	if info.Hit {
		status = append(status, "; hit"...)
		set(header, "Age", wholeSeconds(info.Age))
	} else {
		status = append(append(status, "; fwd="...), firstOf(info.Forward, "miss")...)
	}
	if info.Stored {
		status = append(status, "; stored"...)
	}
	if info.Collapsed {
		status = append(status, "; collapsed"...)
	}
	if info.TTL != 0 {
		status = strconv.AppendInt(append(status, "; ttl="...), int64(info.TTL/time.Second), 10)
	}
	if info.Detail != "" {
		status = append(append(status, "; detail="...), info.Detail...)
	}
	set(header, "Cache-Status", string(status))
}

// wantsFresh tells whether a client asks for an answer that is not from a cache (RFC 9111, sections 5.2.1.4 and 5.4).
func wantsFresh(header http.Header) bool {
	if header["Cache-Control"] == nil && header["Pragma"] == nil {
		return false
	}
	asked := firstOf(strings.Join(header.Values("Cache-Control"), ","), header.Get("Pragma"))
	for directive := range strings.SplitSeq(strings.ToLower(asked), ",") {
		switch strings.TrimSpace(directive) {
		case "no-cache", "no-store", "max-age=0":
			return true
		}
	}
	return false
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// matches tells whether If-None-Match names a tag: quoted, bare, in a list, or as a star. A weak form is no match, as for
// a real tracker (recorded as proto.etag.weak).
func matches(header http.Header, etag string) bool {
	bare := strings.Trim(etag, `"`)
	if bare == "" || header["If-None-Match"] == nil {
		return false
	}
	for item := range strings.SplitSeq(strings.Join(header.Values("If-None-Match"), ","), ",") {
		item = strings.TrimSpace(item)
		if item == "*" || strings.Trim(item, `"`) == bare {
			return true
		}
	}
	return false
}
