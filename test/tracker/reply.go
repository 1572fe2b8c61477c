package tracker

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// documentation is the member that every error carries; 5.2 too says 5.0 (tracker-behaviour.md section 1, Errors).
const documentation = "https://bugzilla.readthedocs.org/en/5.0/api/"

// serverName stands where the real server names itself.
const serverName = "Apache/2.4 (reference tracker)"

// reply is one answer before it is sent.
type reply struct {
	status int
	header http.Header
	body   []byte
	// sized answers carry Content-Length, the others are chunked as the real server's are.
	sized bool
	// dropped stands for no answer: the connection is closed.
	dropped bool
}

func newReply(status int) *reply {
	a := &reply{status: status, header: http.Header{}}
	a.header.Set("Server", serverName)
	if status == http.StatusBadRequest || status == http.StatusRequestURITooLong || status == http.StatusInternalServerError {
		a.header.Set("Connection", "close")
	}
	return a
}

// outcome is what came of a call, in the form that all protocols share.
type outcome struct {
	result  any
	err     error
	success int
	// anonymous says that the request was anonymous.
	anonymous bool
	cookies   []string
	allow     []string
	// nothing is the answer without a body to JSON that is no object.
	nothing bool
}

// form is how a REST answer is to be written.
type form struct {
	contentType string
	callback    string
}

// restReply writes an outcome as REST does.
func (s *Server) restReply(r *http.Request, f form, o outcome) *reply {
	if o.nothing {
		return s.nothingReply()
	}
	status, result := cmp.Or(o.success, http.StatusOK), o.result
	if fail := asFailure(o.err); fail != nil {
		status = s.status(fail.code, status)
		o := object{"error": s.errorMark(fail.code), "code": fail.code, "message": fail.message, "documentation": documentation}
		if fail.code == codeInternal && s.mojolicious() {
			o["message"] = nil
		}
		result = o
	}
	a := newReply(status)
	s.commonHeaders(a, o)
	tag := etag(result, f.contentType)
	if result != nil {
		a.header["Etag"] = []string{tag}
	}
	if matches(r.Header.Get("If-None-Match"), tag) {
		a.status = http.StatusNotModified
		return a
	}
	a.header.Set("Content-Type", f.contentType+"; charset=UTF-8")
	switch {
	case f.callback != "":
		a.body = append([]byte("/**/"+f.callback+"("), appendJSON(nil, result)...)
		a.body = append(a.body, ')')
	case f.contentType == typeHTML:
		shown, _ := json.MarshalIndent(result, "", "   ") // a result is JSON
		a.body = []byte(page("REST result", "<pre>"+html.EscapeString(string(shown))+"</pre>"))
	default:
		a.body = appendJSON(nil, result)
	}
	return a
}

// errorMark is the value of the member "error"; the error of BMO for a request that is too large has a number there.
func (s *Server) errorMark(code int) any {
	if code == codeNotScalars && s.bmo() {
		return 1
	}
	return true
}

// nothingReply is the answer to JSON that is no object: under mod_perl 200 without type and body, under mod_cgi and from
// Harmony an HTML 500, and from BMO a closed connection.
func (s *Server) nothingReply() *reply {
	if s.mojolicious() {
		a := s.mojoPage(http.StatusInternalServerError)
		a.dropped = s.bmo()
		return a
	}
	if s.has(QuirkModCGI) {
		return webServerPage(http.StatusInternalServerError)
	}
	a := newReply(http.StatusOK)
	a.header["Content-Type"] = nil
	a.sized = true
	return a
}

// commonHeaders are those of every answer of the tracker (tracker-behaviour.md section 1, Representation).
func (s *Server) commonHeaders(a *reply, o outcome) {
	h := a.header
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "origin, content-type, accept, x-requested-with")
	s.securityHeaders(h)
	if s.mojolicious() {
		h.Set("Connection", "close")
		h.Set("Access-Control-Allow-Headers", mojoAllowed)
		if s.bmo() {
			h.Set("Access-Control-Allow-Headers", mojoAllowed+", authorization")
		}
	}
	for _, cookie := range o.cookies {
		h.Add("Set-Cookie", cookie)
	}
	if o.anonymous {
		h.Add("Set-Cookie", "Bugzilla_login_request_cookie="+rand.Text()[:10]+"; path=/; HttpOnly")
	}
	if o.allow != nil {
		h.Set("Allow", strings.Join(o.allow, ", "))
		h.Set("Access-Control-Allow-Methods", strings.Join(o.allow, ", "))
	}
}

// mojoAllowed are the request headers that BMO and Harmony allow to scripts of other sites.
const mojoAllowed = "origin, content-type, accept, x-requested-with, user-agent, x-bugzilla-api-key, x-bugzilla-login, " +
	"x-bugzilla-password, x-bugzilla-token, x-phabricator-token"

func (s *Server) securityHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("X-Xss-Protection", "1; mode=block")
	if s.harmony() {
		h.Set("Cache-Control", "private, no-cache")
	}
}

// asFailure gives the failure to show for an error; one without a code is an internal error.
func asFailure(err error) *failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return internal("%v", err)
}

// matches follows tracker-behaviour.md section 1, ETag: bare, quoted, in a list or *; weak forms do not match.
func matches(header, tag string) bool {
	for _, t := range strings.FieldsFunc(header, func(r rune) bool { return strings.ContainsRune(" \t,", r) }) {
		t = strings.TrimSuffix(strings.TrimPrefix(t, `"`), `"`)
		if t == tag || t == "*" {
			return true
		}
	}
	return false
}

const (
	typeJSON = "application/json"
	typeHTML = "text/html"
)

// offered are the types of REST answers; the first is the default.
func (s *Server) offered() []string {
	list := []string{typeJSON, "application/javascript", "text/javascript", typeHTML}
	if s.mojolicious() {
		return list[:3]
	}
	return list
}

var (
	acceptQuality = regexp.MustCompile(`q=(\d\.\d+|\d+)`)
	acceptName    = regexp.MustCompile(`(\S+/[^;]+)`)
)

// negotiate picks the offered type that stands first in the Accept header by quality; names must be exact, wildcards count for nothing.
func (s *Server) negotiate(accept string) string {
	type preference struct {
		name    string
		quality float64
	}
	var prefs []preference
	weight := 1.0
	for part := range strings.SplitSeq(accept, ",") {
		name := acceptName.FindString(part)
		if name == "" {
			continue
		}
		p := preference{name: name, quality: weight}
		if q := acceptQuality.FindStringSubmatch(part); q != nil {
			p.quality, _ = strconv.ParseFloat(q[1], 64)
		} else {
			weight -= 0.001
		}
		prefs = append(prefs, p)
	}
	slices.SortStableFunc(prefs, func(a, b preference) int { return cmp.Compare(b.quality, a.quality) })
	for _, p := range prefs {
		if slices.Contains(s.offered(), p.name) {
			return p.name
		}
	}
	return typeJSON
}

// page is one HTML page.
func page(title, body string) string {
	return "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title></head>\n<body>" + body + "</body></html>\n"
}
