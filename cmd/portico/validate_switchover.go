package main

import (
	"crypto/sha256"
	"strings"
)

// validateTwoTrackers checks what only a second tracker gives a meaning to.
func validateTwoTrackers(c *Config, l *problemList, lookup func(string) (string, bool)) {
	validateCallers(c, l, lookup)
	validateCandidate(c, l)
	validateRules(c, l)
	validateCanary(c, l, lookup)
}

// validateCallers checks that every name stands for keys of its own, that of the
// other tracker too.
func validateCallers(c *Config, l *problemList, lookup func(string) (string, bool)) {
	named := map[[sha256.Size]byte]string{}
	for _, name := range sortedKeys(c.Callers) {
		caller, path := c.Callers[name], "callers."+name
		key, err := caller.Key(lookup)
		switch digest := sha256.Sum256(key); {
		case err != nil:
			l.errorf(secretKey(path+".key", caller.KeyFile, caller.KeyEnv), "%s", err)
		case key == nil:
			l.errorf(path, "has no key: set key_file or key_env")
		case named[digest] != "":
			l.errorf(path, "has the same key as %s", named[digest])
		default:
			named[digest] = name
		}
	}
	for _, name := range sortedKeys(c.Callers) {
		caller, path := c.Callers[name], "callers."+name
		key, err := caller.ShadowKey(lookup)
		switch owner := named[sha256.Sum256(key)]; {
		case err != nil:
			l.errorf(secretKey(path+".shadow_key", caller.ShadowKeyFile, caller.ShadowKeyEnv), "%s", err)
		case key != nil && owner != "" && owner != name:
			l.errorf(path, "has a shadow key that is a key of %s", owner)
		case key != nil:
			named[sha256.Sum256(key)] = name
		}
	}
}

// validateCandidate checks the choice of the second tracker.
func validateCandidate(c *Config, l *problemList) {
	names := sortedKeys(c.Trackers)
	_, known := c.Trackers[c.Candidate]
	switch {
	case c.Candidate == "" && len(c.Switchover.Rules) > 0:
		l.errorf("switchover.rules", "need a second tracker: say which one is the candidate")
	case c.Candidate == "":
	case !known:
		l.errorf("candidate", "%q is none of the trackers (%s)%s", c.Candidate, strings.Join(names, ", "), didYouMean(nearest(c.Candidate, names)))
	case c.Candidate == c.Primary:
		l.errorf("candidate", "%q is the primary tracker already", c.Candidate)
	}
	c.Switchover.Passthrough.validate(l, "switchover.passthrough")
}

// validate checks that nothing is said by half.
func (p PhasesConfig) validate(l *problemList, path string) {
	if (p.Reads == "") != (p.Writes == "") {
		l.errorf(path, "needs both reads and writes, or neither")
	}
}

// validateRules checks the rules with the reader that start-up uses.
func validateRules(c *Config, l *problemList) {
	reportTable(l, "switchover", c.table().Problems(sortedKeys(c.Callers)))
}
