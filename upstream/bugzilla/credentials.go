package bugzilla

import (
	"net/http"
	"net/url"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// authorize puts the caller's credentials where the dialect looks for them:
// headers if it can, else the body of requests that have one, so that they stay
// out of the tracker's access log, else the query (tracker-behaviour.md section 1,
// Credentials).
func authorize(dialect mapping.Dialect, call *Call, caller upstream.Caller, query url.Values, header http.Header) mapping.Members {
	have := caller.Credentials
	if call.RPC != "" {
		have.PageToken = "" // trackers refuse it without the cookies, which do not go along
	}
	setIf(header, "Cookie", cookiesFor(call, have))
	setIf(header, "Authorization", have.Authorization)
	if bearer := have.Bearer(); bearer != "" && (bearer == have.APIKey || dialect.HeaderCredentials && mapping.IsAPIKey(bearer)) {
		header.Del("Authorization") // no tracker reads an API key there
	}
	var body mapping.Members
	for _, form := range have.Forms() {
		switch value, name := *form.Value, form.Parameters[1]; {
		case value == "":
		case dialect.HeaderCredentials && form.Header != "":
			header.Set(form.Header, value)
		case call.Body != nil:
			body.SetText(name, value)
		default:
			query.Set(name, value)
		}
	}
	return body
}

// hasParameters reports whether there is a credential that can travel as a parameter.
func hasParameters(have upstream.Credentials) bool {
	have.Authorization, have.Cookies = "", ""
	return have != upstream.Credentials{}
}

// cookiesFor returns the cookies that go along. Flag type responses are shared by
// callers with the same credential, so nothing else that could change the
// response may go with the request. A tracker ignores the cookies of a login on a
// GET, so they do not go with a read that is sent by POST for another reason, where
// they would count (tracker-behaviour.md section 1, Credentials).
func cookiesFor(call *Call, have upstream.Credentials) string {
	withLogin, withOthers := call.RPC == "", call.Operation != mapping.OpFlagTypes
	var kept []string
	for cookie := range strings.SplitSeq(have.Cookies, ";") {
		cookie = strings.TrimSpace(cookie)
		isLogin := upstream.Credentials{Cookies: cookie}.LoginCookies()
		if isLogin && withLogin || !isLogin && withOthers && cookie != "" {
			kept = append(kept, cookie)
		}
	}
	return strings.Join(kept, "; ")
}

func setIf(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}
