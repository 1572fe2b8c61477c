package recording

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"portico/upstream"
)

// pagePath matches what is kept of the target of a page.
var pagePath = regexp.MustCompile(`^[A-Za-z0-9_./~\-]*`)

// target redacts the target of a request or of a redirect. The query of a page is left out.
func (w *redaction) target(target string) string {
	if !isPage(target) {
		return edit(w.keep).target(target)
	}
	kept := pagePath.FindString(target)
	if kept != target {
		w.spoil(pageInput)
		kept += "?removed"
	}
	return kept
}

// isPage reports whether a target is a page of the tracker, and not one of its interfaces for programs. Pages have credentials under
// names that mean something else elsewhere. None of them is compared, so nothing is lost when little of them is kept.
func isPage(target string) bool {
	return !interfacePath.MatchString(path.Clean("/" + unescaped(pathOf(target))))
}

var interfacePath = regexp.MustCompile(`^/(?:rest|rest\.cgi|jsonrpc\.cgi|xmlrpc\.cgi)(?:/|$)`)

// keptHeader matches the headers that are kept as they are. Others may say where a machine is, or hold a credential of a proxy's.
var keptHeader = regexp.MustCompile(`^(?:Accept|Accept-(?:Encoding|Language)|Access-Control-(?:Allow|Request)-(?:Headers|Methods?|Origin)|Age|Allow|` +
	`Cache-(?:Control|Status)|Content-(?:Disposition|Encoding|Type)|Date|Etag|Expect|Idempotency-Key|If-(?:None-)?Match|If-(?:Unm|M)odified-Since|` +
	`Last-Modified|Origin|Portico-Error|Range|Retry-After|User-Agent|Vary|Www-Authenticate|` +
	`X-(?:Content-Type-Options|Frame-Options|Http-Method-Override|Requested-With|Xss-Protection))$`)

// headers gives the headers that are kept.
func (w *redaction) headers(from map[string]string) map[string]string {
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if value, keep := w.header(http.CanonicalHeaderKey(name), from[name]); keep {
			kept[name] = value
		}
	}
	return kept
}

// header gives what is kept of one header.
func (w *redaction) header(name, value string) (kept string, keep bool) {
	switch {
	case name == "Authorization":
		scheme := strings.Index(value, " ") + 1 // its length, if there is one
		return value[:scheme] + w.credential(value[scheme:]), true
	case name == "Cookie" || name == "Set-Cookie":
		if name == "Set-Cookie" { // without attributes
			value, _, _ = strings.Cut(value, ";")
		}
		return edit(w.cookie).pairs(value), true
	case name == "Location":
		at, err := url.Parse(value)
		if err != nil {
			return "", false
		}
		return w.target(at.RequestURI()), true
	case strings.HasPrefix(name, "X-") && (isCredential(name) || isLogin(name)):
		return w.keep(name, value), true
	}
	return w.clean(upstream.EndAtCredential(value)), keptHeader.MatchString(name)
}

// cookie hides the value of a cookie: any of them may be a session. Every caller that is not logged in gets the one that trackers ask
// for with a login (tracker-behaviour.md section 1, Representation), so that it needs no placeholder.
func (w *redaction) cookie(name, value string) string {
	if strings.TrimSpace(name) == "Bugzilla_login_request_cookie" {
		return "removed"
	}
	return w.credential(value)
}

// requestBody gives what is kept of the body of a request.
func (w *redaction) requestBody(r Request) []byte {
	if len(r.Body) > 0 && isPage(r.Path) {
		return []byte(w.digested(string(r.Body), pageInput))
	}
	body, understood := edit(w.keep).body(r.Headers, r.Body)
	if !understood {
		body = []byte(w.digested(string(r.Body), notKnown))
	}
	return body
}

// textType matches the types of responses that are looked into. Others are files, which are known by their digests.
var textType = regexp.MustCompile(`^(?:application/(?:json|javascript|json-rpc|xml)|text/(?:javascript|xml))$|\+json$`)

// response gives what is kept of a response to a request for a target.
func (w *redaction) response(target string, r Response) *Response {
	body, kind := r.Body, mediaType(r.Headers)
	r.Headers, r.Body, r.HTML = w.headers(r.Headers), nil, kind == "text/html"
	if r.HTML {
		return &r
	}
	isText := textType.MatchString(kind)
	if isText && !isPage(target) {
		var understood bool
		if r.Body, understood = edit(w.keep).body(r.Headers, body); understood {
			return &r
		}
	}
	if r.Size = int64(len(body)); !isText && r.Size > 0 {
		r.SHA256 = fmt.Sprintf("%x", sha256.Sum256(body))
	}
	return &r
}
