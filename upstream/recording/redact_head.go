package recording

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// Headers that are kept as they are. All others may say where somebody is, or hold a credential of a proxy's.
var (
	keptOfRequests = []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Content-Encoding", "Content-Type", "Expect", "Idempotency-Key", "If-Match", "If-Modified-Since",
		"If-None-Match", "If-Unmodified-Since", "Origin", "Range", "User-Agent", "X-Http-Method-Override", "X-Requested-With",
		"Access-Control-Request-Headers", "Access-Control-Request-Method",
	}
	keptOfAnswers = []string{
		"Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin", "Age", "Allow", "Cache-Control",
		"Cache-Status", "Content-Disposition", "Content-Encoding", "Content-Type", "Date", "Etag", "Last-Modified", "Portico-Error", "Retry-After", "Vary",
		"Www-Authenticate", "X-Content-Type-Options", "X-Frame-Options", "X-Xss-Protection",
	}
	secretHeaders = []string{
		"X-Bugzilla-Api-Key", "X-Bugzilla-Password", "X-Bugzilla-Token", "X-Phabricator-Token", "X-Api-Key", "X-Auth-Token",
	}
)

// requestHeaders gives the headers of a request that are kept.
func (s *sheet) requestHeaders(from http.Header) map[string]string {
	kept := map[string]string{}
	for _, name := range sortedNames(from) {
		value := strings.Join(from[name], ", ")
		switch key := http.CanonicalHeaderKey(name); {
		case key == "Authorization":
			kept[name] = s.authorization(from[name][0])
		case key == "Cookie":
			kept[name] = s.cookies(strings.Join(from[name], "; "))
		case key == "X-Bugzilla-Login":
			kept[name] = s.login(value)
		case slices.Contains(secretHeaders, key):
			kept[name] = s.caller(from[name][0])
		case slices.Contains(keptOfRequests, key):
			kept[name] = value
		}
		for _, more := range from[name][1:] {
			s.repeated(http.CanonicalHeaderKey(name), more)
		}
	}
	return kept
}

// repeated takes note of credentials in headers that came twice. Only the first is kept, so the request is not the same.
func (s *sheet) repeated(key, value string) {
	if key == "Authorization" || slices.Contains(secretHeaders, key) {
		s.caller(value)
		s.spoilt(unreadable)
	}
}

func sortedNames(h http.Header) []string {
	var names []string
	for name, values := range h {
		if len(values) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// authorization keeps the scheme.
func (s *sheet) authorization(value string) string {
	scheme, rest, found := strings.Cut(strings.TrimSpace(value), " ")
	if !found {
		return s.caller(scheme)
	}
	if strings.EqualFold(scheme, "basic") {
		s.basic(strings.TrimSpace(rest))
	}
	return scheme + " " + s.caller(rest)
}

// basic takes note of the password in what is hidden as a whole.
func (s *sheet) basic(coded string) {
	plain, err := base64.StdEncoding.DecodeString(coded)
	if _, password, found := strings.Cut(string(plain), ":"); err == nil && found && password != "" {
		s.note(password)
	}
}

// cookies hides every value: any of them may be a session.
func (s *sheet) cookies(header string) string {
	var kept []string
	for cookie := range strings.SplitSeq(header, ";") {
		name, value, found := strings.Cut(strings.TrimSpace(cookie), "=")
		if !found {
			kept = append(kept, s.caller(name))
			continue
		}
		kept = append(kept, name+"="+s.cookie(name, value))
	}
	return strings.Join(kept, "; ")
}

// cookie hides the value of a cookie. The one that trackers give to everybody tells nobody from others.
func (s *sheet) cookie(name, value string) string {
	if value = strings.Trim(value, `" `); name == everybodysCookie && value != "" {
		s.note(value)
		return "removed"
	}
	return s.caller(value)
}

// everybodysCookie comes with each answer to who is not logged in (wire-facts.md, section 1, Representation).
const everybodysCookie = "Bugzilla_login_request_cookie"

// answerHeaders gives the headers of an answer that are kept, in lower case.
func (s *sheet) answerHeaders(from http.Header) map[string]string {
	kept := map[string]string{}
	for _, name := range sortedNames(from) {
		switch key := http.CanonicalHeaderKey(name); {
		case key == "Set-Cookie":
			kept["set-cookie"] = s.setCookies(from[name])
		case key == "Location" || key == "Content-Location":
			kept[strings.ToLower(key)] = s.location(from[name][0])
		case slices.Contains(keptOfAnswers, key):
			kept[strings.ToLower(key)] = strings.Join(from[name], ", ")
		}
	}
	return kept
}

// location redacts an address in an answer. It may begin with another host, with or without a scheme.
func (s *sheet) location(value string) string {
	if strings.HasPrefix(value, "//") {
		value = "http:" + value
	}
	return s.target(value)
}

func (s *sheet) setCookies(list []string) string {
	var kept []string
	for _, each := range list {
		pair, attributes, more := strings.Cut(each, ";")
		name, value, _ := strings.Cut(pair, "=")
		text := strings.TrimSpace(name) + "=" + s.cookie(strings.TrimSpace(name), value)
		if more {
			text += ";" + attributes
		}
		kept = append(kept, text)
	}
	return strings.Join(kept, ", ")
}
