package upstream

import (
	"crypto/sha256"

	"portico/mapping"
)

// NamedCaller is a caller with a name and its keys by the names of the trackers that know them.
type NamedCaller struct {
	Name string
	Keys map[string]string
}

// NamedCallers finds callers by any of their keys. It holds digests, so that the time of a lookup tells nothing about a key.
type NamedCallers map[[sha256.Size]byte]NamedCaller

// Add adds a caller.
func (n NamedCallers) Add(caller NamedCaller) {
	for _, key := range caller.Keys {
		n[sha256.Sum256([]byte(key))] = caller
	}
}

// find returns the zero value for a caller without a name.
func (n NamedCallers) find(caller Caller) NamedCaller {
	if len(n) == 0 || caller.Credentials.APIKey == "" {
		return NamedCaller{}
	}
	return n[sha256.Sum256([]byte(caller.Credentials.APIKey))]
}

// Name returns the name of a caller, empty for one without a name.
func (n NamedCallers) Name(caller Caller) string { return n.find(caller).Name }

// What a tracker is shown in place of a caller's key. Anything else means the key itself.
const (
	// CredentialsService is the key of the service.
	CredentialsService = "service"
	// CredentialsMapped is the caller's own key at that tracker.
	CredentialsMapped = "mapped"
)

// Reasons of errors for requests that are sent nowhere.
const (
	// ReasonNoMappedKey says that the caller has no key at the tracker.
	ReasonNoMappedKey mapping.Reason = "no-mapped-key"
	// ReasonLoginRefused says that the tracker takes API keys only.
	ReasonLoginRefused mapping.Reason = "login-refused"
)

// Keys says what one tracker is shown in place of what a caller shows.
type Keys struct {
	Tracker string
	// Credentials is CredentialsService or CredentialsMapped; else the caller's own key is shown.
	Credentials, ServiceKey string
	// RefuseLogins refuses all that is neither a key nor anonymous.
	RefuseLogins bool
	Named        NamedCallers
	// ForAll lets callers without a name, and logins, use ServiceKey: any key would do, so it is for comparisons only.
	ForAll bool
	// Missing is told of each caller that has no key at the tracker; nil means that nothing is.
	Missing func(Caller)
}

// For returns the caller as the tracker is to see it. An anonymous caller stays anonymous. Errors are *mapping.Error.
func (k Keys) For(caller Caller) (Caller, error) {
	named, have, key := k.Named.find(caller), caller.Credentials, ""
	isLogin := have.APIKey == "" || have.Token != "" || have.Login != "" && have.Password != ""
	switch {
	case caller.Anonymous():
		return caller, nil
	case k.Credentials == CredentialsService && k.ForAll:
		key = k.ServiceKey
	case k.RefuseLogins && (isLogin || have.LoginCookies()):
		return Caller{}, k.refuse(ReasonLoginRefused, "Tracker %s takes API keys only here: no login, token or login cookie is sent to it.")
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
		return Caller{}, k.refuse(ReasonNoMappedKey, "This caller has no key at tracker %s, so nothing was sent.")
	}
	caller.Credentials = Credentials{APIKey: key}
	return caller, nil
}

// Forwards reports whether the tracker is shown the caller's own key.
func (k Keys) Forwards() bool {
	return k.Credentials != CredentialsService && k.Credentials != CredentialsMapped
}

// ForComparison is For without cookies, which belong to one tracker. It returns false where there is no caller to compare for, such as
// one that is known by its cookies only.
func (k Keys) ForComparison(caller Caller) (Caller, bool) {
	caller, err := k.For(caller)
	have := &caller.Credentials
	byCookies := have.LoginCookies() && (have.Login == "" || have.Password == "") && have.Token == ""
	have.Cookies = ""
	return caller, err == nil && !byCookies
}

func (k Keys) refuse(reason mapping.Reason, format string) error {
	err := mapping.Refuse(mapping.CodeLoginRequired, format, k.Tracker)
	err.Reason = reason
	return err
}
