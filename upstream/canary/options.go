package canary

import (
	"context"
	"log/slog"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/canary/writes"
	"portico/upstream/state"
)

// Options configure a Canary. All are required, but for those that say otherwise.
type Options struct {
	Settings

	// Trackers are the two trackers by name.
	Trackers map[string]Tracker
	// Store keeps what was found. It outlives the Canary.
	Store *state.Store
	// Reference and Candidate are the names of the two trackers. The candidate is to take the other's place.
	Reference, Candidate string
	// Split says where payloads lie; its limit of the body is not used.
	Split jsonblob.SplitOptions
	// CallerName gives the name of a caller for samples, empty where it has none.
	CallerName func(caller upstream.Caller) string
	// Locate finds the product of a bug at the reference, for findings; nil finds none.
	Locate writes.Locator

	Logger   *slog.Logger
	Observer Observer
}

// Tracker is one of the two trackers, as comparisons ask it. Its client shares nothing with the one that clients wait for.
type Tracker struct {
	upstream.Tracker
	// Caller gives the caller in whose name it is asked, false when there is none.
	Caller func(caller upstream.Caller) (upstream.Caller, bool)
	// Address gives the path and query by which it is asked for a call by GET, for samples; it is empty where there is none.
	Address func(ctx context.Context, call upstream.Call) string
	// Refuses reports whether it would not be asked now, since it is known to be sick; then a read is not even kept.
	Refuses func() bool
	// Plan renders the request that it would be sent for a write.
	Plan writes.Render
}

// Settings are those that the configuration has: package config reads them by their tags.
type Settings struct {
	// Sampling says which calls are compared.
	Sampling `keys:""`
	// Workers is the maximum number of concurrent comparisons.
	Workers int `key:"workers" default:"4" min:"1" max:"256"`
	// Queue is the maximum number of comparisons that wait, and as many wait for being confirmed; the next is dropped and counted.
	Queue int `key:"queue" default:"256" min:"1" max:"100000"`
	// PerSecond is the maximum number of calls a second that are compared; half as many are confirmed.
	PerSecond int `key:"per_second" default:"50" min:"1"`
	// Timeout bounds each of those calls.
	Timeout time.Duration `key:"timeout" default:"10s" min:"10ms"`
	// ConfirmAfter is the pause before a difference is confirmed by a second request to both trackers.
	ConfirmAfter time.Duration `key:"confirm_after" default:"1s" min:"1ms"`
	// Noise is the share of the comparisons without a difference in which the reference is asked twice more.
	Noise float64 `key:"noise" default:"0.05" min:"0" max:"1"`
	// KeepSamples is how many redacted samples are kept of each finding.
	KeepSamples int `key:"keep_samples" default:"5" min:"1" max:"100"`
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
	Latency verdict.LatencyTarget `key:"latency"`
	// Equivalences are differences that do not matter.
	Equivalences []compare.Equivalence `key:"equivalences"`
	// MaxBody is the size beside attachments' content up to which responses are compared member by member; longer ones are compared by digest.
	MaxBody int64 `key:"max_body" default:"64MiB" is:"size" min:"1KiB" max:"1024GiB"`
}

// Observer gets what becomes of samples, for metrics. It is called by several goroutines and must not block.
type Observer interface {
	// Compared counts a comparison by its outcome.
	Compared(operation mapping.Operation, outcome Outcome)
	// Dropped counts a comparison that was not made.
	Dropped(operation mapping.Operation, reason verdict.DropReason)
}

// Sampling says which calls are compared.
type Sampling = upstream.Sampling
