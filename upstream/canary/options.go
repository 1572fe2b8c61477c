package canary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// Options configure a Canary. Trackers, Store and Candidate are required; other
// zero fields mean the default in brackets.
type Options struct {
	// Trackers are the clients that comparisons use, by the trackers' names. Nothing
	// of them is shared with those that clients wait for.
	Trackers map[string]upstream.Tracker
	// Store keeps what was found. It outlives the Canary.
	Store *state.Store
	// Candidate is the one of Trackers that is to take the other's place.
	Candidate string

	Sampling  Sampling
	Workers   int           // comparisons made at a time [4]
	Queue     int           // answers that may wait for a worker, and as many for being confirmed [256]
	PerSecond int           // samples taken in a second at most; half as many are confirmed [50]
	Timeout   time.Duration // of each call that a comparison makes [10s]

	MaxBody      int64                // bytes of an answer beside attachments' content that are compared; longer ones by digest [64 MiB]
	Split        mapping.SplitOptions // where payloads lie; its limit of the body is not used
	ConfirmAfter time.Duration        // before both are asked again [1s]
	NoiseShare   float64              // of comparisons without a difference, those in which the tracker that answered is asked twice more
	Samples      int                  // kept for each finding [5]

	// Caller gives the caller in whose name a tracker is asked, false when there is
	// none. nil forwards what the client showed, without cookies.
	Caller func(caller upstream.Caller, tracker string) (upstream.Caller, bool)
	Rules  Rules
	// Refuses tells of a tracker that it would not be asked now, since it is known to
	// be sick; then a read is not even kept. nil never knows.
	Refuses func(tracker string) bool

	// Plan renders the request that a tracker would be sent for a write, as a JSON
	// object; a *mapping.Error says that it has no form for it. nil compares no plans.
	Plan func(ctx context.Context, tracker string, call upstream.Call) ([]byte, error)
	// Follows says that the candidate gets the writes of the other tracker by means
	// of its own, so that both show the same after ReadBack [5s].
	Follows  bool
	ReadBack time.Duration
	// Isolated lets writes be repeated on the candidate, as long as Marker, a product
	// that only the candidate has, proves that it is not the tracker in use.
	Isolated bool
	Marker   string

	Target  float64 // the share of mismatches that is allowed, from 0 to 1 [0.001]
	Latency LatencyTarget

	Logger   *slog.Logger
	Observer Observer
}

// Observer is told of what becomes of samples, for metrics. It is called from one
// goroutine, about once in a second, and never in the way of a client.
type Observer interface {
	// Compared counts comparisons since the last time by outcome.
	Compared(operation mapping.Operation, outcome Outcome, n int64)
	// Dropped counts comparisons that were not made.
	Dropped(operation mapping.Operation, reason DropReason, n int64)
}

// Sampling says which calls are compared.
type Sampling struct {
	// Default is the share of calls, from 0 to 1, of operations without their own.
	Default    float64                       `json:"default"`
	Operations map[mapping.Operation]float64 `json:"operations,omitempty"`
	// Sticky takes the same share of the callers instead, always the same ones as
	// long as the process lives.
	Sticky bool `json:"sticky"`
}

// Validate finds shares that are none and operations that do not exist.
func (s Sampling) Validate() error {
	var wrong []error
	if !isShare(s.Default) {
		wrong = append(wrong, fmt.Errorf("the share %v is not between 0 and 1", s.Default))
	}
	known := map[mapping.Operation]bool{}
	for _, operation := range mapping.Operations() {
		known[operation] = true
	}
	for operation, share := range s.Operations {
		if !known[operation] {
			wrong = append(wrong, fmt.Errorf("there is no operation %q", operation))
		}
		if !isShare(share) {
			wrong = append(wrong, fmt.Errorf("the share %v of %s is not between 0 and 1", share, operation))
		}
	}
	return errors.Join(wrong...)
}

// isShare is false for NaN too.
func isShare(share float64) bool { return share >= 0 && share <= 1 }

func (s Sampling) clone() Sampling {
	s.Operations = maps.Clone(s.Operations)
	return s
}

func (s *Sampling) share(operation mapping.Operation) float64 {
	if share, ok := s.Operations[operation]; ok {
		return share
	}
	return s.Default
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, 4)
	o.Queue = cmp.Or(o.Queue, 256)
	o.PerSecond = cmp.Or(o.PerSecond, 50)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 64<<20)
	o.ConfirmAfter = cmp.Or(o.ConfirmAfter, time.Second)
	o.Samples = cmp.Or(o.Samples, 5)
	o.ReadBack = cmp.Or(o.ReadBack, 5*time.Second)
	o.Target = cmp.Or(o.Target, 0.001)
	o.Sampling = o.Sampling.clone()
	if o.Caller == nil {
		o.Caller = func(caller upstream.Caller, _ string) (upstream.Caller, bool) { return caller, true }
	}
	if o.Refuses == nil {
		o.Refuses = func(string) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports everything that is wrong with the options at once.
func (o Options) Validate() error {
	wrong := []error{o.Sampling.Validate()}
	if o.Store == nil {
		wrong = append(wrong, errors.New("a comparison needs a store"))
	}
	if o.Trackers[o.Candidate] == nil || len(o.Trackers) < 2 {
		wrong = append(wrong, errors.New("a comparison needs two trackers, one of them the candidate"))
	}
	if o.Workers < 0 || o.Queue < 0 || o.PerSecond < 0 || o.Samples < 0 || o.MaxBody < 0 {
		wrong = append(wrong, errors.New("a bound of the comparison is negative"))
	}
	if o.Timeout < 0 || o.ConfirmAfter < 0 || o.ReadBack < 0 {
		wrong = append(wrong, errors.New("a time of the comparison is negative"))
	}
	if !isShare(o.NoiseShare) || !isShare(o.Target) {
		wrong = append(wrong, errors.New("noise share and target are shares from 0 to 1"))
	}
	if o.Isolated && o.Marker == "" {
		wrong = append(wrong, errors.New("an isolated candidate needs a marker to prove it"))
	}
	if o.Isolated && o.Follows {
		wrong = append(wrong, errors.New("a candidate that follows the other tracker is not isolated: it would get each write twice"))
	}
	return errors.Join(wrong...)
}
