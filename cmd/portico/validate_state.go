package main

import (
	"net/url"
	"strings"

	"portico/upstream/state"
)

// validateState checks where durable state is kept.
func validateState(c *Config, l *problemList) {
	if file, ok := strings.CutPrefix(c.State, "sqlite:"); ok {
		if file == "" {
			l.errorf("state", "names no file: write sqlite:portico.db")
		}
		return
	}
	u, err := url.Parse(c.State)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Hostname() == "" && u.Query().Get("host") == "" {
		l.errorf("state", "is neither sqlite:FILE nor a postgres://HOST/DATABASE URL")
		return
	}
	if err := checkPort(u.Port()); err != nil {
		l.errorf("state", "%s", err)
	}
	warnPassword(u, "state", l)
}

// stateProblems are those that start-up would meet when it opens the store, as far as they
// can be known without touching it. Who only explains a request does not need the store.
func stateProblems(c *Config) []Problem {
	if c.Candidate == "" {
		return nil
	}
	l := problemList{origins: c.origins}
	if err := state.Check(c.State); err != nil {
		l.errorf("state", "%s", err)
	}
	return l.problems
}
