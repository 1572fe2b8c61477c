package config

import "portico/upstream/switchover"

// Caller gives a name to the callers with a key, for use in rules. The key itself never stands in the configuration.
type Caller struct {
	// Key is that at the primary, which the caller shows.
	Key Secret `keys:"key_"`
	// ShadowKey is that at the other tracker.
	ShadowKey Secret `keys:"shadow_key_"`
	// Keys are keys by the names of trackers, in place of the two above.
	Keys map[string]Secret `key:"keys"`
}

// KeyAt names the key of a caller at a tracker.
func (c *Config) KeyAt(name, tracker string) Secret {
	caller := c.Callers[name]
	switch key, given := caller.Keys[tracker]; {
	case given:
		return key
	case tracker == c.Primary:
		return caller.Key
	case tracker == c.Candidate:
		return caller.ShadowKey
	}
	return Secret{}
}

// callers checks that every name stands for keys of its own, that of the other tracker too.
func (c *checker) callers() {
	owners := map[string]string{} // by key
	for _, name := range SortedKeys(c.Callers) {
		caller, path := c.Callers[name], "callers."+name
		for _, tracker := range SortedKeys(caller.Keys) {
			if _, known := c.Trackers[tracker]; !known {
				c.errorf(path+".keys."+tracker, "is not one of the trackers")
			}
		}
		if !c.KeyAt(name, c.Primary).Given() {
			c.errorf(path, "has no key: set key_file or key_env")
		}
		for _, tracker := range SortedKeys(c.Trackers) {
			key := c.KeyAt(name, tracker).text
			switch owner, taken := owners[key]; {
			case taken && owner != name:
				c.errorf(path, "has a key at tracker %s that is a key of %s", tracker, owner)
			case key != "":
				owners[key] = name
			}
		}
	}
}

// credentials checks what trackers are shown, in live requests and in comparisons.
func (c *checker) credentials() {
	for _, name := range SortedKeys(c.Trackers) {
		c.shows("trackers."+name, name, c.Trackers[name].Credentials, c.Trackers[name].ServiceKey)
	}
	c.shows("canary", c.Candidate, c.Canary.Credentials, c.Canary.ServiceKey)
}

// shows checks that there is what a tracker is to be shown.
func (c *checker) shows(section, tracker, credentials string, service Secret) {
	mapped := false
	for name := range c.Callers {
		mapped = mapped || c.KeyAt(name, tracker).Given()
	}
	switch {
	case credentials == switchover.CredentialsService && !service.Given():
		c.errorf(section+".credentials", "service needs service_key_file or service_key_env")
	case credentials == switchover.CredentialsMapped && !mapped:
		c.errorf(section+".credentials", "mapped needs a caller with a key at this tracker: set callers.NAME.keys.%s", tracker)
	}
}
