package recording

import (
	"slices"
	"strings"
)

// secretNames are parameters and members that carry a credential, in lower case (wire-facts.md, section 1, Credentials, and
// what the tracker's other interfaces and pages take).
var secretNames = []string{
	"api_key", "bugzilla_api_key", "password", "bugzilla_password", "token", "bugzilla_token", "old_password", "new_password",
	"passwd", "cryptpassword", "bugzilla_logincookie", "bugzilla_login_request_cookie", "sudo", "apikey", "authorization",
	"access_token", "refresh_token", "client_secret",
}

// secretEndings make a credential of any name.
var secretEndings = []string{"_api_key", "_password", "_token", "_secret"}

// isSecret tells whether what stands under a name is a credential. It is less exact about names than trackers are.
func isSecret(name string) bool {
	name = plainName(name)
	return slices.Contains(secretNames, name) || slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

// isLogin tells whether what stands under a name says who somebody is.
func isLogin(name string) bool {
	name = plainName(name)
	return name == "login" || name == "bugzilla_login"
}

func plainName(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(name, " \t\r\n\x00"), "-", "_"))
}

// hide gives the placeholder for what stands under a name, and tells whether there is one at all.
func (s *sheet) hide(name, value string) (string, bool) {
	switch {
	case isSecret(name):
		return s.caller(value), true
	case isLogin(name):
		return s.login(value), true
	}
	return "", false
}
