package bugzilla

import (
	"strings"

	"portico/upstream"
)

// SuccessProves reports whether a success shows that a credential is good. Reads ignore cookies, everything in Authorization, since a bearer
// token that is refused as a key is dropped, and tokens without a number; of credentials of several kinds at once a tracker may look
// at one only (tracker-behaviour.md section 1).
func SuccessProves(shown upstream.Credentials, write bool) bool {
	other := shown.Authorization != "" && (shown.Bearer() == "" || shown.Bearer() != shown.APIKey)
	user, _, dashed := strings.Cut(shown.Token, "-")
	numbered := dashed && user != "" && strings.Trim(user, "0123456789") == ""
	kinds, good := 0, false
	for _, kind := range []struct{ shown, read bool }{
		{shown.APIKey != "", !shown.KeyIsBearer()},
		{shown.Login != "" || shown.Password != "", shown.Login != "" && shown.Password != ""},
		{shown.Token != "", numbered},
		{shown.LoginCookies(), false},
		{other, false},
	} {
		if kind.shown {
			kinds++
			good = kind.read || write
		}
	}
	return kinds == 1 && good
}
