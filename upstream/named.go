package upstream

import "crypto/sha256"

// NamedCaller is a caller with a name and its keys at the two trackers; a key is empty where there is none.
type NamedCaller struct{ Name, Key, CandidateKey string }

// NamedCallers finds callers by either of their keys. It holds digests, so that the time of a lookup tells nothing about a key.
type NamedCallers map[[sha256.Size]byte]NamedCaller

// Add adds a caller.
func (n NamedCallers) Add(caller NamedCaller) {
	for _, key := range []string{caller.Key, caller.CandidateKey} {
		if key != "" {
			n[sha256.Sum256([]byte(key))] = caller
		}
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

// Credentials that the candidate is shown in a comparison, besides the caller's own.
const (
	// CredentialsService is the key of the service for all callers.
	CredentialsService = "service"
	// CredentialsMapped is the candidate's key of each named caller.
	CredentialsMapped = "mapped"
)

// ComparisonCallers says in whose name trackers are asked for comparisons.
type ComparisonCallers struct {
	// Candidate is the name of the tracker that is compared.
	Candidate string
	// Credentials is CredentialsService or CredentialsMapped; else the caller's own credential is shown.
	Credentials string
	// ServiceKey is the key of the service.
	ServiceKey string
	// Named are the callers with names.
	Named NamedCallers
}

// For returns the caller in whose name a tracker is asked what a caller was told, false where there is none. An anonymous caller stays
// anonymous everywhere.
func (c ComparisonCallers) For(caller Caller, tracker string) (Caller, bool) {
	credentials := &caller.Credentials
	switch {
	case caller.Anonymous():
	case c.Credentials == CredentialsService && tracker == c.Candidate:
		*credentials = Credentials{APIKey: c.ServiceKey}
		return caller, true
	case c.Credentials == CredentialsMapped:
		key := c.Named.find(caller).Key
		if tracker == c.Candidate {
			key = c.Named.find(caller).CandidateKey
		}
		*credentials = Credentials{APIKey: key}
		return caller, key != ""
	}
	// Cookies are not forwarded. A caller that is known by its cookies only would be another one without them.
	byCookies := credentials.LoginCookies() && (credentials.Login == "" || credentials.Password == "") && credentials.Token == ""
	credentials.Cookies = ""
	return caller, !byCookies
}
