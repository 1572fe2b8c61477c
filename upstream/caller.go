package upstream

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"portico/mapping"
)

// Credentials are what a client showed to say who it is. At most one value per
// kind; the tracker decides between kinds: login with password, then token or
// cookies, then key (tracker-behaviour.md section 1, Credentials).
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
	// tracker may want; a bearer token that could be an API key is in APIKey as well.
	Authorization string
	// Cookies is the Cookie header as sent.
	Cookies string
	// PageToken came as Bugzilla_api_token: pages of BMO and Harmony send it, since these trackers take the cookies of a login only with it.
	PageToken string
}

// CredentialForm is one kind of credential under the names that trackers and clients have for it.
type CredentialForm struct {
	// Parameters are its names in a query or a body. Trackers know the last one, and clients use either.
	Parameters [2]string
	// Header is the name of its header, empty for none.
	Header string
	Value  *string
}

// Forms are the kinds of credentials that have parameters (tracker-behaviour.md section 1, Credentials).
func (c *Credentials) Forms() [5]CredentialForm {
	return [...]CredentialForm{
		{[2]string{"login", "Bugzilla_login"}, "X-Bugzilla-Login", &c.Login},
		{[2]string{"password", "Bugzilla_password"}, "X-Bugzilla-Password", &c.Password},
		{[2]string{"token", "Bugzilla_token"}, "X-Bugzilla-Token", &c.Token},
		{[2]string{"api_key", "Bugzilla_api_key"}, "X-Bugzilla-Api-Key", &c.APIKey},
		{[2]string{"Bugzilla_api_token", "Bugzilla_api_token"}, "", &c.PageToken},
	}
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
	// Mapped says that Credentials are those that the tracker is to be shown, whatever is configured for callers.
	Mapped bool
}

// Anonymous reports whether nothing was shown that a tracker could take for a
// login. A login without a password counts for nothing, as for the tracker.
func (c Caller) Anonymous() bool {
	have := c.Credentials
	return !have.Complete() && have.Authorization == "" && !have.LoginCookies()
}

// CredentialKind names what the caller is known by, in the order in which a tracker looks at it: anonymous, login, token, key,
// authorization or cookies.
func (c Caller) CredentialKind() string {
	have := c.Credentials
	switch {
	case c.Anonymous():
		return "anonymous"
	case have.Login != "" && have.Password != "":
		return "login"
	case have.Token != "":
		return "token"
	case have.APIKey != "":
		return "key"
	case have.Authorization != "":
		return "authorization"
	default:
		return "cookies"
	}
}

// LoginCookies reports whether the cookies could log a user in. Trackers set
// other cookies on everybody (tracker-behaviour.md section 1, Representation).
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

// KeyIsBearer reports whether the API key came as a bearer token and in no other form.
func (c Credentials) KeyIsBearer() bool {
	return c.APIKey != "" && c.APIKey == c.Bearer() && !c.KeyTwice
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

// Complete reports whether there is a credential that proves an identity by itself: a key, a token, or a login with its password.
func (c *Credentials) Complete() bool {
	return c.APIKey != "" || c.Token != "" || c.Login != "" && c.Password != ""
}

// AddHeaders adds what the headers of a client's request hold to what its query and body hold. With a complete credential from
// there, the credential headers of trackers and bearer tokens are ignored. Cookies and other schemes of Authorization are not theirs
// alone and stay.
func (c *Credentials) AddHeaders(header http.Header) {
	text := func(name string) string { return strings.TrimSpace(header.Get(name)) }
	c.Authorization, c.Cookies = text("Authorization"), strings.Join(header.Values("Cookie"), "; ")
	if !c.LoginCookies() {
		c.PageToken = "" // such a request is anonymous, and the tracker would refuse it
	}
	if c.Complete() {
		if c.Bearer() != "" {
			c.Authorization = ""
		}
		return
	}
	c.APIKey = text("X-Bugzilla-Api-Key")
	c.KeyTwice = c.APIKey != "" && c.APIKey == c.Bearer()
	if c.APIKey == "" && mapping.IsAPIKey(c.Bearer()) {
		c.APIKey = c.Bearer()
	}
	c.Token = text("X-Bugzilla-Token")
	if c.Login == "" && c.Password == "" {
		c.Login, c.Password = text("X-Bugzilla-Login"), header.Get("X-Bugzilla-Password")
	}
}

var assignment = regexp.MustCompile(`(?i)(?:api_?key|login|passw(?:or)?d|token)(?:=|%(?:25)*3d)|x-bugzilla-(?:api-key|login|password|token)(?:[:=]|%(?:25)*3[ad])`)

// EndAtCredential ends a text behind the name of a credential and an equals sign, or of its header and a colon. Clients write credentials into
// other values by mistake, such as with a second question mark in an address, or with an escaped one.
func EndAtCredential(text string) string {
	if at := assignment.FindStringIndex(text); at != nil {
		return text[:at[1]] + "…"
	}
	return text
}
