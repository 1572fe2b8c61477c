package main

import (
	"slices"

	"portico/upstream/switchover"
)

// validateCanary checks the comparison: that the credentials which it is to show
// are there.
func validateCanary(c *Config, l *problemList, lookup func(string) (string, bool)) {
	settings := &c.Canary
	key, err := settings.ServiceKey(lookup)
	switch {
	case err != nil:
		l.errorf(secretKey("canary.service_key", settings.ServiceKeyFile, settings.ServiceKeyEnv), "%s", err)
	case settings.Credentials == credentialsService && key == nil:
		l.errorf("canary.credentials", "service needs service_key_file or service_key_env")
	case settings.Credentials == credentialsMapped && !c.anyShadowKey():
		l.errorf("canary.credentials", "mapped needs a caller with shadow_key_file or shadow_key_env")
	}
	switch {
	case settings.Isolated && settings.Follows:
		l.errorf("canary.isolated", "and follows exclude each other: the candidate would get each write twice")
	case settings.Isolated && settings.Marker == "":
		l.errorf("canary.isolated", "needs a marker that proves it")
	}
	validateWritesCompared(c, l)
	validateEquivalences(c, l)
}

// validateWritesCompared finds settings for the comparison of writes that no rule has
// compared. Operators may set other rules, so that this is no mistake.
func validateWritesCompared(c *Config, l *problemList) {
	compares := func(rule switchover.Rule) bool { return rule.Writes == switchover.PhaseOldCompare }
	if c.Candidate == "" || slices.ContainsFunc(c.table().Rules, compares) {
		return
	}
	const nothing = "does nothing as long as no rule has writes in the phase old-compare"
	if c.Canary.Follows {
		l.warnf("canary.follows", nothing)
	}
	if c.Canary.Isolated {
		l.warnf("canary.isolated", nothing)
	}
}

// anyShadowKey reports whether any caller has a key for the other tracker.
func (c *Config) anyShadowKey() bool {
	for _, caller := range c.Callers {
		if caller.ShadowKeyFile != "" || caller.ShadowKeyEnv != "" {
			return true
		}
	}
	return false
}
