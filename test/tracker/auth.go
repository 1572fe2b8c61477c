package tracker

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strconv"
	"strings"
)

// fixCredentials gives the short names of credentials their long ones (tracker-behaviour.md section 1, Credentials): api_key wins over
// Bugzilla_api_key, token over Bugzilla_token; login counts only beside password.
func fixCredentials(p object) {
	login, hasLogin := p["login"]
	password, hasPassword := p["password"]
	if hasLogin && hasPassword {
		p["Bugzilla_login"], p["Bugzilla_password"] = login, password
	}
	for _, name := range []string{"api_key", "token"} {
		if v, ok := p[name]; ok {
			p["Bugzilla_"+name] = v
			delete(p, name)
		}
	}
}

// headerCredentials takes the credentials that BMO and Harmony read from headers; an empty header counts as absent. BMO prefers the
// headers to the query, Harmony does not (tracker-behaviour.md section 14).
func (s *Server) headerCredentials(h http.Header, p object) {
	take := func(name, value string) {
		if _, ok := p[name]; value != "" && (!ok || s.bmo()) {
			p[name] = value
		}
	}
	take("Bugzilla_api_key", h.Get("X-Bugzilla-Api-Key"))
	take("Bugzilla_login", h.Get("X-Bugzilla-Login"))
	take("Bugzilla_password", h.Get("X-Bugzilla-Password"))
	take("Bugzilla_token", h.Get("X-Bugzilla-Token"))
}

// credentialNames are members that no operation takes for a field of its own.
var credentialNames = []string{"Bugzilla_login", "Bugzilla_password", "Bugzilla_api_key", "Bugzilla_token",
	"Bugzilla_restrictlogin", "Bugzilla_remember", "login", "password"}

// authenticate finds out who calls: login with password, then token or cookie, then API key. It takes the credentials
// out of the parameters.
func (c *call) authenticate() error {
	p := c.params
	c.credentials = object{}
	for _, name := range credentialNames {
		if v, ok := p[name]; ok {
			c.credentials[name] = v
			delete(p, name)
		}
	}
	for _, way := range []func() (*user, error){c.byPassword, c.byToken, c.byCookie, c.byKey} {
		u, err := way()
		if err != nil {
			return err
		}
		if u != nil {
			if u.disabledText != "" {
				return fail(codeDisabled, "%s", u.disabledText)
			}
			c.user = u
			return nil
		}
	}
	return nil
}

func (c *call) byPassword() (*user, error) {
	login, password := c.credentials["Bugzilla_login"], c.credentials["Bugzilla_password"]
	if login == nil || password == nil {
		return nil, nil
	}
	u := c.tx.userNamed(trim(text(login)))
	if u == nil || subtle.ConstantTimeCompare([]byte(u.password), []byte(text(password))) != 1 {
		return nil, fail(codeBadLogin, "the login name or the password is wrong")
	}
	return u, nil
}

func (c *call) byToken() (*user, error) {
	id, secret, ok := strings.Cut(trim(text(c.credentials["Bugzilla_token"])), "-")
	uid, numeric := natural(id)
	if !ok || !numeric || secret == "" {
		return nil, nil
	}
	return c.byLogin(uid, secret)
}

// byCookie looks at login cookies, but not on GET.
func (c *call) byCookie() (*user, error) {
	if c.request.Method == http.MethodGet {
		return nil, nil
	}
	id, err := c.request.Cookie("Bugzilla_login")
	secret, err2 := c.request.Cookie("Bugzilla_logincookie")
	if err != nil || err2 != nil {
		return nil, nil
	}
	uid, _ := natural(id.Value)
	return c.byLogin(uid, secret.Value)
}

func (c *call) byLogin(uid int, secret string) (*user, error) {
	if owner, ok := c.tx.data.tokens[secret]; !ok || owner != uid {
		f := fail(codeUser, "the cookies or the token are not valid")
		if c.server.mojolicious() {
			f.code = codeBadToken
		}
		return nil, f
	}
	return c.tx.users.get(uid), nil
}

func (c *call) byKey() (*user, error) {
	v := c.credentials["Bugzilla_api_key"]
	key := trim(text(v))
	if !truth(key) {
		return nil, nil
	}
	for _, u := range c.tx.users.all() {
		for _, k := range u.keys {
			if k.text == key && !k.revoked {
				return u, nil
			}
		}
	}
	if err := c.limitRate("key", maxBadKeys); err != nil {
		return nil, err
	}
	return nil, fail(codeBadKey, "the API key is not valid or has been revoked")
}

// needLogin refuses anonymous callers.
func (c *call) needLogin() error {
	if c.user == nil {
		return errLoginRequired()
	}
	return nil
}

// logIn gives a token to who comes with login and password.
func (c *call) logIn() (any, error) {
	if c.credentials["Bugzilla_login"] == nil {
		return nil, fail(codeParamRequired, "the parameter 'login' is required")
	}
	if c.credentials["Bugzilla_password"] == nil {
		return nil, fail(codeParamRequired, "the parameter 'password' is required")
	}
	secret := c.tx.data.firstToken
	if c.tx.data.firstToken = ""; secret == "" {
		secret = rand.Text()[:10]
	}
	c.tx.data.tokens[secret] = c.user.id
	return object{"id": c.user.id, "token": strconv.Itoa(c.user.id) + "-" + secret}, nil
}

func (c *call) logOut() (any, error) {
	_, secret, _ := strings.Cut(trim(text(c.credentials["Bugzilla_token"])), "-")
	delete(c.tx.data.tokens, secret)
	c.user, c.cookies = nil, removedCookies
	if c.server.mojolicious() {
		return nil, nil
	}
	return object{"result": nil}, nil
}

// removedCookies are what a logout sends to make a browser forget its login.
var removedCookies = []string{
	"Bugzilla_login=X; path=/; expires=Tue, 15-Sep-1998 21:49:00 GMT",
	"Bugzilla_logincookie=X; path=/; expires=Tue, 15-Sep-1998 21:49:00 GMT",
	"sudo=X; path=/; expires=Tue, 15-Sep-1998 21:49:00 GMT",
}

// validLogin tells whether the credentials belong to the given login.
func (c *call) validLogin() (any, error) {
	login := trim(text(c.credentials["login"]))
	return object{"result": c.user != nil && strings.EqualFold(c.user.login, login)}, nil
}
