package main

import (
	"fmt"
	"time"

	"portico/upstream/canary"
)

// validateEquivalences checks them with the reader that start-up uses.
func validateEquivalences(c *Config, l *problemList) {
	_, problems := canary.NewRules(c.equivalences(), time.Now())
	for _, p := range problems {
		path := "canary.equivalences"
		if p.Rule >= 0 {
			path = fmt.Sprintf("%s[%d]", path, p.Rule)
		}
		if p.Field != "" {
			path = join(path, p.Field)
		}
		if p.Warning {
			l.warnf(path, "%s", p.Message)
		} else {
			l.errorf(path, "%s", p.Message)
		}
	}
}
