package config

import (
	"time"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// Switchover says which of two trackers serves which requests.
type Switchover struct {
	// Follow is how long a caller's reads of an object go to the tracker of its own last write of it.
	Follow time.Duration `key:"follow" default:"1m" min:"0s"`
	// Journal records the writes of rules with replicate, and copies them to the other tracker.
	Journal Journal `key:"journal"`
	// Settings are about ids and names of objects that both trackers have.
	idmap.Settings `keys:""`
	// RuleSet may also stand in a file of its own (LoadRules).
	switchover.RuleSet `keys:""`
}

// Journal is about writes that are recorded and copied to the other tracker.
type Journal struct {
	// Key encrypts what is recorded.
	Key Secret `keys:"key"`
	// OlderKeyFiles hold keys that are used no more, for what was recorded with them.
	OlderKeyFiles []string `key:"older_key_files"`
	// Mode says what becomes of writes while the store is away.
	Mode string `key:"mode" default:"required" oneof:"required|best-effort"`
	// Spool is the directory for large content. All processes that share the store share it.
	Spool string `key:"spool" default:"portico-spool"`
	// MaxInline is the content, in base64, from which on it goes to the spool.
	MaxInline Size `key:"max_inline" default:"64KiB" min:"0"`
	// Keep is how long entries that are copied are listed.
	Keep time.Duration `key:"keep" default:"720h" min:"1m"`
	// Failures is how many attempts fail before a lane is parked.
	Failures int `key:"failures" default:"10" min:"1" max:"1000"`
	// Workers is the maximum number of lanes that are copied at a time.
	Workers int `key:"workers" default:"4" min:"1" max:"256"`
	// ServiceKey is shown to the candidate for copies of callers that have no key there, PrimaryServiceKey to the primary.
	ServiceKey        Secret `keys:"service_key"`
	PrimaryServiceKey Secret `keys:"primary_service_key"`

	keys *journal.Keys
}

// Keys returns the keys of the journal, which Problems has read, and nil where none is configured.
func (j *Journal) Keys() *journal.Keys { return j.keys }

func (j *Journal) readKeys() (err error) {
	if j.Key.text == "" {
		return nil
	}
	var older [][]byte
	for _, file := range j.OlderKeyFiles {
		key := Secret{File: file}
		if err := key.Read(nil); err != nil {
			return err
		}
		older = append(older, []byte(key.text))
	}
	j.keys, err = journal.NewKeys([]byte(j.Key.text), older...)
	return err
}

// Canary is the comparison of two trackers' responses.
type Canary struct {
	// Sample is the share of the calls that are compared.
	Sample float64 `key:"sample" default:"1" min:"0" max:"1"`
	// Operations are other shares for single operations.
	Operations map[mapping.Operation]float64 `key:"operations" min:"0" max:"1"`
	// Sticky takes the sample by caller, and not by request.
	Sticky bool `key:"sticky"`
	// Workers is the maximum number of concurrent comparisons.
	Workers int `key:"workers" default:"4" min:"1" max:"256"`
	// Queue is the maximum number of comparisons that wait; the next is dropped and counted.
	Queue int `key:"queue" default:"256" min:"1" max:"100000"`
	// PerSecond is the maximum number of calls a second that are compared.
	PerSecond int `key:"per_second" default:"50" min:"1"`
	// Timeout bounds each of those calls.
	Timeout time.Duration `key:"timeout" default:"10s" min:"10ms"`
	// MaxBody is the size up to which responses are compared member by member; longer ones are compared by digest.
	MaxBody Size `key:"max_body" default:"64MiB" min:"1KiB"`
	// ConfirmAfter is the pause before a difference is confirmed by a second request to both trackers.
	ConfirmAfter time.Duration `key:"confirm_after" default:"1s" min:"1ms"`
	// Noise is the share of the comparisons with a second request to the reference.
	Noise float64 `key:"noise" default:"0.05" min:"0" max:"1"`
	// KeepSamples is how many redacted samples are kept of each finding.
	KeepSamples int `key:"keep_samples" default:"5" min:"1" max:"100"`
	// Credentials says what the other tracker is shown: the caller's own credential, one of the service, or one for each
	// named caller.
	Credentials string `key:"credentials" default:"forward" oneof:"forward|service|mapped"`
	// ServiceKey is the key of the service.
	ServiceKey Secret `keys:"service_key"`
	// Follows says that the candidate gets what is written to the primary by a way outside Portico, so that it can be read
	// back.
	Follows bool `key:"follows"`
	// ReadBack is how long that may take.
	ReadBack time.Duration `key:"read_back" default:"5s" min:"10ms"`
	// Isolated says that the candidate has no other clients, so that writes may be replayed against it.
	Isolated bool `key:"isolated"`
	// Marker is a product that only the candidate has, which proves it.
	Marker string `key:"marker"`
	// Target is the percentage of differing responses that is acceptable.
	Target float64 `key:"target" default:"0.1" min:"0.0001" max:"100"`
	// Latency is how much slower the candidate may be.
	Latency Latency `key:"latency"`
	// Equivalences are differences that do not matter.
	Equivalences []compare.Equivalence `key:"equivalences"`
}

// Latency bounds how much slower the candidate may be: at the quantiles that count, by Ratio and by Slack besides.
type Latency struct {
	// Ratio is how many times as long a response may take.
	Ratio float64 `key:"ratio" default:"2" min:"1"`
	// Slack is what it may take longer whatever the ratio.
	Slack time.Duration `key:"slack" default:"50ms" min:"0s"`
}
