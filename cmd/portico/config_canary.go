package main

import (
	"time"

	"portico/mapping"
)

// CanaryConfig is the comparison of two trackers' answers (DESIGN.md, section 9).
type CanaryConfig struct {
	// Sample is the share of the calls that are compared.
	Sample float64 `key:"sample" min:"0" max:"1"`
	// Operations are other shares for single operations.
	Operations map[mapping.Operation]float64 `key:"operations" min:"0" max:"1"`
	// Sticky takes the sample by caller, and not by request.
	Sticky bool `key:"sticky"`
	// Workers is how many comparisons are made at a time.
	Workers int `key:"workers" min:"1" max:"256"`
	// Queue is how many may wait for their turn; the next is dropped and counted.
	Queue int `key:"queue" min:"1" max:"100000"`
	// PerSecond is how many calls are taken for comparison in a second at most.
	PerSecond int `key:"per_second" min:"1"`
	// Timeout bounds each of those calls.
	Timeout time.Duration `key:"timeout" min:"10ms"`
	// MaxBody is the size up to which answers are compared member by member;
	// longer ones are compared by digest.
	MaxBody Size `key:"max_body" min:"1KiB"`
	// ConfirmAfter is the pause before both trackers are asked again about a
	// difference.
	ConfirmAfter time.Duration `key:"confirm_after" min:"1ms"`
	// Noise is the share of the comparisons for which the answering tracker is
	// asked twice.
	Noise float64 `key:"noise" min:"0" max:"1"`
	// KeepSamples is how many redacted samples are kept of each finding.
	KeepSamples int `key:"keep_samples" min:"1" max:"100"`
	// Credentials says what the other tracker is shown: the caller's own
	// credential, one of the service, or one for each named caller.
	Credentials string `key:"credentials" oneof:"forward|service|mapped"`
	// ServiceKeyFile holds the key of the service.
	ServiceKeyFile string `key:"service_key_file"`
	// ServiceKeyEnv names the environment variable that holds it instead.
	ServiceKeyEnv string `key:"service_key_env"`
	// Follows says that the candidate gets what is written to the primary by
	// ways of its own, so that it can be read back.
	Follows bool `key:"follows"`
	// ReadBack is how long that may take.
	ReadBack time.Duration `key:"read_back" min:"10ms"`
	// Isolated says that the candidate serves nobody, so that writes may be
	// replayed against it.
	Isolated bool `key:"isolated"`
	// Marker is a product that only the candidate has, which proves it.
	Marker string `key:"marker"`
	// Target is the percentage of differing answers that is acceptable.
	Target float64 `key:"target" min:"0.0001" max:"100"`
	// Latency is how much slower the candidate may be.
	Latency LatencyConfig `key:"latency"`
	// Equivalences are differences that do not matter.
	Equivalences []EquivalenceConfig `key:"equivalences"`
}

// LatencyConfig bounds how much slower the candidate may be: at the quantiles
// that count, by Ratio and by Slack besides.
type LatencyConfig struct {
	// Ratio is how many times as long it may take.
	Ratio float64 `key:"ratio" min:"1"`
	// Slack is what it may take longer whatever the ratio.
	Slack time.Duration `key:"slack" min:"0s"`
}

// EquivalenceConfig is one kind of difference that does not matter, with whoever
// said so.
type EquivalenceConfig struct {
	// Name is what it is called in reports.
	Name string `key:"name"`
	// Type is the kind of rule.
	Type string `key:"type"`
	// Operation is the one it is for; empty is all.
	Operation string `key:"operation"`
	// Path is a pattern over the paths of differences.
	Path string `key:"path"`
	// Within is how far apart two times may be.
	Within time.Duration `key:"within" min:"0s"`
	// Pattern is a regular expression.
	Pattern string `key:"pattern"`
	// Offset is what ids of the other tracker are higher by.
	Offset int `key:"offset"`
	// Table gives the other tracker's id for an id.
	Table map[int64]int64 `key:"table"`
	// Owner answers for it.
	Owner string `key:"owner"`
	// Reason is why it does not matter.
	Reason string `key:"reason"`
	// Expires is when it counts no more.
	Expires Date `key:"expires"`
}

// SetDefaults makes the rule's table.
func (e *EquivalenceConfig) SetDefaults() { e.Table = map[int64]int64{} }

// defaultCanary looks at every call, and bounds what that costs.
func defaultCanary() CanaryConfig {
	return CanaryConfig{
		Sample:       1,
		Operations:   map[mapping.Operation]float64{},
		Workers:      4,
		Queue:        256,
		PerSecond:    50,
		Timeout:      10 * time.Second,
		MaxBody:      64 * MiB,
		ConfirmAfter: time.Second,
		Noise:        0.05,
		KeepSamples:  5,
		Credentials:  "forward",
		ReadBack:     5 * time.Second,
		Target:       0.1,
		Latency:      LatencyConfig{Ratio: 2, Slack: 50 * time.Millisecond},
		Equivalences: []EquivalenceConfig{},
	}
}

// What the other tracker is shown (DESIGN.md, section 9).
const (
	credentialsForward = "forward"
	credentialsService = "service"
	credentialsMapped  = "mapped"
)
