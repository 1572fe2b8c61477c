package switchover

import (
	"portico/mapping"
	"portico/upstream"
)

// What a tracker is shown in place of a caller's key. Anything else means the key itself.
const (
	// CredentialsService is the key of the service.
	CredentialsService = "service"
	// CredentialsMapped is the caller's own key at that tracker.
	CredentialsMapped = "mapped"
)

// Keys says what one tracker is shown in place of what a caller shows.
type Keys struct {
	Tracker string
	// Credentials is CredentialsService or CredentialsMapped; else the caller's own key is shown.
	Credentials, ServiceKey string
	// RefuseLogins refuses all that is neither a key nor anonymous.
	RefuseLogins bool
	Named        upstream.NamedCallers
	// ForAll lets callers without a name, and logins, use ServiceKey: any key would do, so it is for comparisons only.
	ForAll bool
	// Missing is told of each caller that has no key at the tracker; nil means that nothing is.
	Missing func(upstream.Caller)
}

// For returns the caller as the tracker is to see it. An anonymous caller stays anonymous. Errors are *mapping.Error.
func (k Keys) For(caller upstream.Caller) (upstream.Caller, error) {
	named, have, key := k.Named.Find(caller), caller.Credentials, ""
	isLogin := have.APIKey == "" || have.Token != "" || have.Login != "" && have.Password != ""
	switch {
	case caller.Anonymous(), caller.Mapped:
		return caller, nil
	case k.Credentials == CredentialsService && k.ForAll:
		key = k.ServiceKey
	case k.RefuseLogins && (isLogin || have.LoginCookies()):
		return upstream.Caller{}, mapping.NewError(mapping.CodeLoginRequired, upstream.ReasonLoginRefused,
			"Tracker %s takes API keys only here: no login, token or login cookie is sent to it.", k.Tracker)
	case isLogin || k.Forwards():
		return caller, nil
	case k.Credentials == CredentialsMapped:
		key = named.Keys[k.Tracker]
	case named.Name != "":
		key = k.ServiceKey
	}
	if key == "" {
		if k.Missing != nil {
			k.Missing(caller)
		}
		return upstream.Caller{}, mapping.NewError(mapping.CodeLoginRequired, upstream.ReasonNoMappedKey,
			"This caller has no key at tracker %s, so nothing was sent.", k.Tracker)
	}
	caller.Credentials = upstream.Credentials{APIKey: key}
	return caller, nil
}

// Forwards reports whether the tracker is shown the caller's own key.
func (k Keys) Forwards() bool {
	return k.Credentials != CredentialsService && k.Credentials != CredentialsMapped
}

// ForComparison is For without cookies, which belong to one tracker. It returns false where there is no caller to compare for, such as
// one that is known by its cookies only.
func (k Keys) ForComparison(caller upstream.Caller) (upstream.Caller, bool) {
	caller, err := k.For(caller)
	have := &caller.Credentials
	byCookies := have.LoginCookies() && (have.Login == "" || have.Password == "") && have.Token == ""
	have.Cookies, have.PageToken = "", ""
	return caller, err == nil && !byCookies
}
