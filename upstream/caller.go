package upstream

import (
	"log/slog"
	"strings"
)

// Credentials are what a client showed to say who it is. At most one value per
// kind; the tracker decides between kinds: login with password, then token or
// cookies, then key (wire-facts.md section 1, Credentials).
type Credentials struct {
	// APIKey came as Bugzilla_api_key, api_key, X-BUGZILLA-API-KEY or a bearer token.
	APIKey string
	// KeyTwice says that APIKey came as a bearer token and in another form besides,
	// as one client sends it. Some trackers know bearer tokens that are no keys.
	KeyTwice bool
	// Login and Password came as Bugzilla_login and Bugzilla_password, login and
	// password, or X-BUGZILLA-LOGIN and X-BUGZILLA-PASSWORD.
	Login, Password string
	// Token came as Bugzilla_token, token or X-BUGZILLA-TOKEN.
	Token string
	// Authorization is the header as sent, for schemes that a proxy before the
	// tracker may want; a bearer token is in APIKey as well.
	Authorization string
	// Cookies is the Cookie header as sent.
	Cookies string
}

// Caller is the client on whose behalf a call is made. It is forwarded and
// never stored; printing it in any way shows no credential.
type Caller struct {
	Credentials Credentials
	// Address is the client's IP address.
	Address string
	// UserAgent is the client's own name for itself.
	UserAgent string
	// RequestID ties the log lines of Portico and the tracker together.
	RequestID string
	// Role tells the tracker what a call is for that no client waits for, such as
	// shadow; it is sent in the header Portico-Role. Empty for a client's own.
	Role string
}

// Anonymous tells whether nothing was shown that a tracker could take for a
// login. A login without a password counts for nothing, as for the tracker.
func (c Caller) Anonymous() bool {
	have := c.Credentials
	loggedIn := have.Login != "" && have.Password != ""
	return !loggedIn && have.APIKey == "" && have.Token == "" && have.Authorization == "" && !have.LoginCookies()
}

// LoginCookies tells whether the cookies could log somebody in. Trackers set
// other cookies on everybody (wire-facts.md section 1, Representation).
func (c Credentials) LoginCookies() bool {
	return strings.Contains(c.Cookies, "Bugzilla_login=") || strings.Contains(c.Cookies, "Bugzilla_logincookie=")
}

// Bearer gives the bearer token of the Authorization header, empty when there
// is none.
func (c Credentials) Bearer() string {
	scheme, token, _ := strings.Cut(c.Authorization, " ")
	if strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}

// String hides the credentials.
func (c Credentials) String() string { return "[credentials]" }

// GoString hides the credentials.
func (c Credentials) GoString() string { return "[credentials]" }

// LogValue hides the credentials.
func (c Credentials) LogValue() slog.Value { return slog.StringValue("[credentials]") }

// MarshalText hides the credentials.
func (c Credentials) MarshalText() ([]byte, error) { return []byte("[credentials]"), nil }

// String shows the request id only.
func (c Caller) String() string { return "caller of request " + c.RequestID }

// GoString shows the request id only.
func (c Caller) GoString() string { return c.String() }

// LogValue shows the request id only.
func (c Caller) LogValue() slog.Value { return slog.StringValue(c.String()) }
