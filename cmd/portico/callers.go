package main

import (
	"crypto/sha256"
	"fmt"

	"portico/upstream"
)

// knownCallers tells callers by the keys that they show. Keys are compared by
// digest, so that the time tells nothing about them.
type knownCallers struct {
	names map[[sha256.Size]byte]string
	// own and shadow are the two keys of each, empty where there is none.
	own, shadow map[string]string
}

// callers reads the keys of the callers that have names.
func (b *builder) callers() (*knownCallers, error) {
	known := &knownCallers{names: map[[sha256.Size]byte]string{}, own: map[string]string{}, shadow: map[string]string{}}
	for name, caller := range b.cfg.Callers {
		own, err := caller.Key(b.lookup)
		if err != nil {
			return nil, fmt.Errorf("key of the caller %s: %w", name, err)
		}
		shadow, err := caller.ShadowKey(b.lookup)
		if err != nil {
			return nil, fmt.Errorf("shadow key of the caller %s: %w", name, err)
		}
		known.own[name], known.shadow[name] = string(own), string(shadow)
		for _, key := range [][]byte{own, shadow} {
			if key != nil {
				known.names[sha256.Sum256(key)] = name
			}
		}
	}
	return known, nil
}

// name gives the name of a caller, empty where it has none. Who moves to the key
// for the other tracker stays the same caller.
func (k *knownCallers) name(caller upstream.Caller) string {
	if len(k.names) == 0 || caller.Credentials.APIKey == "" {
		return ""
	}
	return k.names[sha256.Sum256([]byte(caller.Credentials.APIKey))]
}

// shadowCallers gives the function that says in whose name a tracker is asked for a
// comparison (DESIGN.md, section 9). The candidate is shown what the policy says,
// and the primary tracker what the caller showed.
func (b *builder) shadowCallers() (func(upstream.Caller, string) (upstream.Caller, bool), error) {
	settings := b.cfg.Canary
	switch settings.Credentials {
	case credentialsService:
		key, err := settings.ServiceKey(b.lookup)
		if err != nil {
			return nil, fmt.Errorf("key of the service: %w", err)
		}
		return b.serviceCaller(string(key)), nil
	case credentialsMapped:
		known, err := b.callers()
		if err != nil {
			return nil, err
		}
		return b.mappedCaller(known), nil
	}
	return func(caller upstream.Caller, _ string) (upstream.Caller, bool) { return forwarded(caller) }, nil
}

// serviceCaller asks the candidate in the name of the service. Who shows nothing
// stays nobody, so that both trackers show what everybody may see.
func (b *builder) serviceCaller(key string) func(upstream.Caller, string) (upstream.Caller, bool) {
	candidate := b.cfg.Candidate
	return func(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
		if tracker != candidate || caller.Anonymous() {
			return forwarded(caller)
		}
		return withKey(caller, key), true
	}
}

// mappedCaller asks each tracker with the key that the caller has there. Who shows
// nothing needs no key.
func (b *builder) mappedCaller(known *knownCallers) func(upstream.Caller, string) (upstream.Caller, bool) {
	candidate := b.cfg.Candidate
	return func(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
		if caller.Anonymous() {
			return forwarded(caller)
		}
		key := known.own[known.name(caller)]
		if tracker == candidate {
			key = known.shadow[known.name(caller)]
		}
		return withKey(caller, key), key != ""
	}
}

// forwarded is a caller with what it showed, but for cookies. Who is known by those
// would be somebody else without them, and is not asked for.
func forwarded(caller upstream.Caller) (upstream.Caller, bool) {
	have := &caller.Credentials
	byCookies := have.LoginCookies() && (have.Login == "" || have.Password == "") && have.Token == ""
	have.Cookies = ""
	return caller, !byCookies
}

// withKey is a caller who shows a key and nothing else.
func withKey(caller upstream.Caller, key string) upstream.Caller {
	caller.Credentials = upstream.Credentials{APIKey: key}
	return caller
}
