package recording

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"portico/mapping"
)

// subjects are what the responses to the seven operations tell of, as bits.
type subjects uint8

const (
	flagTypes subjects = 1 << iota
	attachments

	nothing    subjects = 0
	everything          = flagTypes | attachments
)

// missing is what the trackers do not have because requests were not sent.
type missing struct {
	// changed is what they would have changed, and failed the same without those that --only leaves out.
	changed, failed subjects
	// login says that one of them gave a token.
	login bool
}

// add notes what a request would have done that is not sent.
func (m *missing) add(e Exchange, reason string) {
	changed := changedBy(e)
	m.changed |= changed
	if reason != skipNotOnly {
		m.failed |= changed
	}
	m.login = m.login || strings.HasPrefix(e.Request.Path, "/rest/login")
}

// recordedToken matches a token that was not taken out of a request. In place of one that was a caller may have another.
var recordedToken = regexp.MustCompile(`[?&](?:Bugzilla_)?token=[^{]`)

// touches reports whether the recorded response to a request may tell of what is missing. What --only leaves out on purpose holds
// no write back.
func (m *missing) touches(e Exchange) bool {
	about, changed := nothing, m.changed
	if strings.HasPrefix(string(e.Operation), "flag_type") {
		about = flagTypes
	} else if e.Operation != "" {
		about = attachments
	}
	if !isRead(e.Request.Method) {
		changed = m.failed
	}
	return changed&about != 0 || m.login && recordedToken.MatchString(e.Request.Path)
}

// effects say what requests change, the first that matches counts. A request is written here as its method with its target, and a call
// of the older interfaces as CALL with its method.
var effects = []struct {
	request *regexp.Regexp
	changes subjects
}{
	{regexp.MustCompile(`^\w+ /editflagtypes\.cgi\?`), everything}, // its links change things too
	{regexp.MustCompile(`^(?:GET|HEAD|OPTIONS) `), nothing},
	{regexp.MustCompile(`^POST /rest(?:\.cgi)?/flag_type\b`), flagTypes},
	{regexp.MustCompile(`^\w+ /rest(?:\.cgi)?/bug/`), attachments},
	{regexp.MustCompile(`^\w+ /rest(?:\.cgi)?/bug_user_last_visit\b`), nothing},
	{regexp.MustCompile(`^CALL \w+\.(?:get\w*|search|attachments|comments|history|fields|legal_values|possible_duplicates|version|time|extensions|parameters|login|logout|valid_login)$`), nothing},
	{regexp.MustCompile(`^CALL FlagType\.create$`), flagTypes},
	{regexp.MustCompile(`^CALL Bug\.`), attachments},
	{regexp.MustCompile(`^\w+ /(?:index|buglist|query|show_bug|userprefs|token|report|colchange|request)\.cgi`), nothing},
	{regexp.MustCompile(`^\w+ /(?:post_bug|process_bug|attachment)\.cgi`), attachments},
}

var (
	rpcCall       = regexp.MustCompile(`^POST /(?:json|xml)rpc\.cgi`)
	methodElement = regexp.MustCompile(`<methodName>\s*([A-Za-z_.]+)\s*</methodName>`)
)

// changedBy gives what a request may have changed when it was recorded; one that is not known may have changed everything. What was
// refused has changed nothing.
func changedBy(e Exchange) subjects {
	if e.Response != nil && e.Response.Status >= http.StatusBadRequest && e.Response.Status < http.StatusInternalServerError {
		return nothing
	}
	request := e.Request.Method + " " + slashes.ReplaceAllString(e.Request.Path, "/")
	if rpcCall.MatchString(request) {
		call, _ := mapping.ParseMembers(e.Request.Body) // none has no method
		request = "CALL " + textOf(call.Get("method"))
		if found := methodElement.FindSubmatch(e.Request.Body); found != nil {
			request = "CALL " + string(found[1])
		}
	}
	for _, effect := range effects {
		if effect.request.MatchString(request) {
			return effect.changes
		}
	}
	return everything
}

// credentialHeaders are headers that hold credentials for Portico and for some trackers, with the query parameters that hold the same for
// all trackers (tracker-behaviour.md section 1, Credentials).
var credentialHeaders = map[string]string{
	"X-Bugzilla-Api-Key": "Bugzilla_api_key", "X-Bugzilla-Login": "Bugzilla_login", "X-Bugzilla-Password": "Bugzilla_password",
	"X-Bugzilla-Token": "Bugzilla_token", "Authorization": "Bugzilla_api_key",
}

var bearer = regexp.MustCompile(`(?i)^bearer +`)

// keysInQuery gives the request of an exchange with its credentials in the query and not in headers, and reports whether there were
// any. Only a request that had placeholders was recorded before Portico, which translates the form of credentials. A credential that is in
// the query stays: trackers and Portico believe it first.
func keysInQuery(e Exchange) (moved Request, found bool) {
	r := e.Request
	path, query, _ := strings.Cut(r.Path, "?")
	given, _ := url.ParseQuery(strings.ReplaceAll(query, ";", "&")) // what cannot be read is no credential
	credentials, headers := url.Values{}, maps.Clone(r.Headers)
	for name, value := range r.Headers {
		key := http.CanonicalHeaderKey(name)
		parameter, value := credentialHeaders[key], bearer.ReplaceAllString(value, "")
		if parameter == "" || key == "Authorization" && !mapping.IsAPIKey(value) {
			continue
		}
		delete(headers, name)
		if !given.Has(parameter) && !given.Has(strings.TrimPrefix(parameter, "Bugzilla_")) {
			credentials.Set(parameter, value)
		}
	}
	if len(credentials) == 0 || len(e.Callers) == 0 {
		return r, false
	}
	r.Headers, r.Path = headers, path+"?"+strings.TrimPrefix(query+"&"+credentials.Encode(), "&")
	return r, true
}
