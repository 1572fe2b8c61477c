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

// Find returns the zero value for a caller without a name.
func (n NamedCallers) Find(caller Caller) NamedCaller {
	if len(n) == 0 || caller.Credentials.APIKey == "" {
		return NamedCaller{}
	}
	return n[sha256.Sum256([]byte(caller.Credentials.APIKey))]
}

// Name returns the name of a caller, empty for one without a name.
func (n NamedCallers) Name(caller Caller) string { return n.Find(caller).Name }

// Reasons of errors for requests that are sent nowhere.
const (
	// ReasonNoMappedKey says that the caller has no key at the tracker.
	ReasonNoMappedKey mapping.Reason = "no-mapped-key"
	// ReasonLoginRefused says that the tracker takes API keys only.
	ReasonLoginRefused mapping.Reason = "login-refused"
	// ReasonUnmapped says that an id cannot be translated.
	ReasonUnmapped mapping.Reason = "unmapped-id"
)
