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
	// Trackers are the two trackers' clients for comparisons, by name. They share nothing with those that clients wait for.
	Trackers map[string]upstream.Tracker
	// Store keeps what was found. It outlives the Canary.
	Store *state.Store
	// Reference and Candidate are the names of the two trackers. The candidate is to take the other's place.
	Reference, Candidate string

	Sampling  Sampling
	Workers   int           // comparisons made at a time
	Queue     int           // responses that may wait for a worker, and as many for being confirmed
	PerSecond int           // maximum number of samples in a second; half as many are confirmed
	Timeout   time.Duration // of each call that a comparison makes

	MaxBody      int64                 // bytes of a response beside attachments' content that are compared; longer ones by digest
	Split        jsonblob.SplitOptions // where payloads lie; its limit of the body is not used
	ConfirmAfter time.Duration         // before both are asked again
	NoiseShare   float64               // of comparisons without a difference, those in which the reference is asked twice more
	Samples      int                   // kept for each finding

	// Caller gives the caller in whose name a tracker is asked, false when there is none.
	Caller func(caller upstream.Caller, tracker string) (upstream.Caller, bool)
	Rules  compare.Rules
	// CallerName gives the name of a caller for samples, empty where it has none.
	CallerName func(caller upstream.Caller) string
	// Locate finds the product of a bug at the reference, for findings; nil finds none.
	Locate writes.Locator
	// Address gives the path and query by which a tracker is asked for a call by GET, for
	// samples; it is empty where there is none.
	Address func(ctx context.Context, tracker string, call upstream.Call) string
	// Refuses reports whether a tracker would not be asked now, since it is known to
	// be sick; then a read is not even kept.
	Refuses func(tracker string) bool

	// Plan renders the request that a tracker would be sent for a write, as a JSON
	// object; a *mapping.Error says that it has no form for it. nil compares no plans.
	Plan func(ctx context.Context, tracker string, call upstream.Call) ([]byte, error)
	// Follows says that the candidate gets the writes of the other tracker by means
	// of its own, so that both show the same after ReadBack.
	Follows  bool
	ReadBack time.Duration
	// Isolated lets writes be repeated on the candidate, as long as Marker, a product
	// that only the candidate has, proves that it is not the tracker in use.
	Isolated bool
	Marker   string

	Target  float64               // the allowed share of mismatches, from 0 to 1
	Latency verdict.LatencyTarget // the zero value has defaults

	Logger   *slog.Logger
	Observer Observer
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
