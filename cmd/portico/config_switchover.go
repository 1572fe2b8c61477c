package main

import "time"

// CallerConfig gives a name to whoever shows a key, so that rules can speak of
// them. The key itself never stands in the configuration.
type CallerConfig struct {
	// KeyFile holds the key that the caller shows.
	KeyFile string `key:"key_file"`
	// KeyEnv names the environment variable that holds it instead.
	KeyEnv string `key:"key_env"`
	// ShadowKeyFile holds the key that stands for it at the other tracker, where
	// canary.credentials is mapped.
	ShadowKeyFile string `key:"shadow_key_file"`
	// ShadowKeyEnv names the environment variable that holds it instead.
	ShadowKeyEnv string `key:"shadow_key_env"`
}

// SwitchoverConfig says which of two trackers answers what.
type SwitchoverConfig struct {
	// Follow is how long a caller's reads of an object go where its own last
	// write of it went.
	Follow time.Duration `key:"follow" min:"0s"`
	// Passthrough are the phases of paths outside the interface; empty ones are
	// those of the last rule.
	Passthrough PhasesConfig `key:"passthrough"`
	// Rules are looked at in order, and the first that matches counts.
	Rules []RuleConfig `key:"rules"`
}

// PhasesConfig is how far reads and writes have moved; both are set or neither.
type PhasesConfig struct {
	// Reads is the phase of reads.
	Reads string `key:"reads" oneof:"|old|old-compare|new-compare|new"`
	// Writes is the phase of writes.
	Writes string `key:"writes" oneof:"|old|old-compare|new-compare|new"`
}

// RuleConfig says in which phase the requests are that match all of its
// conditions. One without any matches everything.
type RuleConfig struct {
	// Name is what the rule is called in metrics, pages and records.
	Name string `key:"name"`
	// Product are the products of the objects.
	Product Texts `key:"product"`
	// Component are their components.
	Component Texts `key:"component"`
	// Bugs are ranges of bug ids.
	Bugs []IDRange `key:"bugs"`
	// Attachments are ranges of attachment ids.
	Attachments []IDRange `key:"attachments"`
	// Operation are operations of the interface, as metrics name them.
	Operation Texts `key:"operation"`
	// Caller are names from Config.Callers.
	Caller Texts `key:"caller"`
	// UserAgent are programs as they name themselves; a * at the end stands for
	// any rest.
	UserAgent Texts `key:"user_agent"`
	// Percent is the share of the callers, who stay on their side of it.
	Percent Share `key:"percent"`
	// Reads is the phase of reads.
	Reads string `key:"reads" oneof:"old|old-compare|new-compare|new"`
	// Writes is the phase of writes.
	Writes string `key:"writes" oneof:"old|old-compare|new-compare|new"`
}

// SetDefaults compares and moves nothing.
func (r *RuleConfig) SetDefaults() {
	r.Reads, r.Writes = "old-compare", "old-compare"
}

// defaultSwitchover compares everything and moves nothing.
func defaultSwitchover() SwitchoverConfig {
	return SwitchoverConfig{Follow: time.Minute, Rules: []RuleConfig{}}
}
