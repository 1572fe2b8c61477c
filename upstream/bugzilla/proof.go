package bugzilla

import (
	"regexp"

	"portico/upstream"
)

// SuccessProves reports whether a success shows that a credential is good. Reads ignore cookies, everything in Authorization that is no API key, and
// tokens without a number; of credentials of several kinds at once a tracker may look at one only (tracker-behaviour.md section 1).
func SuccessProves(shown upstream.Credentials, write bool) bool {
	other := shown.Authorization != "" && (shown.Bearer() == "" || shown.Bearer() != shown.APIKey)
	kinds := 0
	for _, isShown := range []bool{shown.APIKey != "", shown.Login != "" || shown.Password != "", shown.Token != "", shown.LoginCookies(), other} {
		if isShown {
			kinds++
		}
	}
	isRead := shown.APIKey != "" || shown.Login != "" && shown.Password != "" || numberedToken.MatchString(shown.Token)
	return kinds == 1 && (write || isRead)
}

// numberedToken matches tokens with the number of a user, as trackers give them.
var numberedToken = regexp.MustCompile(`^[0-9]+-`)
