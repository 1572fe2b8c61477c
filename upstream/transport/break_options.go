package transport

import (
	"cmp"
	"errors"
	"time"
)

// BreakOptions sets the two breakers of one tracker. Zero fields mean the default in brackets.
type BreakOptions struct {
	Window       time.Duration // failures are counted over this sliding time [10s]
	MinRequests  int           // fewer results in the window prove nothing [10]
	FailureRatio float64       // opens at this share of failures [0.5]
	Unanswered   int           // opens at once after so many calls in a row without any answer [5]
	OpenFor      time.Duration // the first open time; doubles each time a trial fails [1s]
	OpenMax      time.Duration // [10s]
	Jitter       float64       // an open time is shortened by up to this share [0.2]
	Trials       int           // calls let through at a time while half-open, and successes needed to close [1]
	TrialTimeout time.Duration // a trial that has no answer by then has failed; one whose body goes on is given up on [10s]
	BlindTimeout time.Duration // the same for a trial while no probe has been good, where there is one [1.5s]
	History      int           // changes remembered [32]

	// Probe asks the tracker for a sign of life while a breaker is open; when it returns nil, the next call may try
	// at once. Without one a breaker waits its open time out. See GetProbe.
	Probe        Probe
	ProbeEvery   time.Duration // [100ms]
	ProbeTimeout time.Duration // [1s]
	Probes       int           // probes under way at a time at most: all that fit in ProbeTimeout, or recovery is seen late [10]

	// OnPanic is told of a panic in Probe, which says nothing about the tracker.
	OnPanic func(cause any)

	// OnChange is told every change of state, in order, one at a time. It may call Status.
	OnChange func(Change)
}

func (o BreakOptions) withDefaults() BreakOptions {
	o.Window = cmp.Or(o.Window, 10*time.Second)
	o.MinRequests = cmp.Or(o.MinRequests, 10)
	o.FailureRatio = cmp.Or(o.FailureRatio, 0.5)
	o.Unanswered = cmp.Or(o.Unanswered, 5)
	o.OpenFor = cmp.Or(o.OpenFor, time.Second)
	o.OpenMax = cmp.Or(o.OpenMax, max(10*time.Second, o.OpenFor))
	o.Jitter = cmp.Or(o.Jitter, 0.2)
	o.Trials = cmp.Or(o.Trials, 1)
	o.TrialTimeout = cmp.Or(o.TrialTimeout, 10*time.Second)
	o.BlindTimeout = cmp.Or(o.BlindTimeout, 1500*time.Millisecond)
	o.History = cmp.Or(o.History, 32)
	o.ProbeEvery = cmp.Or(o.ProbeEvery, 100*time.Millisecond)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, time.Second)
	o.Probes = cmp.Or(o.Probes, 10)
	return o
}

// Validate reports everything that is wrong with the options at once.
func (o BreakOptions) Validate() error {
	var wrong []error
	if o.FailureRatio < 0 || o.FailureRatio > 1 {
		wrong = append(wrong, errors.New("breaker failure ratio: must be between 0 and 1"))
	}
	if o.Jitter < 0 || o.Jitter >= 1 {
		wrong = append(wrong, errors.New("breaker jitter: must be at least 0 and below 1"))
	}
	if d := o.withDefaults(); d.OpenMax < d.OpenFor {
		wrong = append(wrong, errors.New("longest open time: must not be shorter than the first"))
	}
	return errors.Join(append(wrong,
		notNegative("breaker window", o.Window),
		notNegative("breaker minimum of requests", o.MinRequests),
		notNegative("unanswered calls in a row", o.Unanswered),
		notNegative("open time", o.OpenFor),
		notNegative("breaker trials", o.Trials),
		notNegative("trial timeout", o.TrialTimeout),
		notNegative("trial timeout without a good probe", o.BlindTimeout),
		notNegative("breaker history", o.History),
		notNegative("probe interval", o.ProbeEvery),
		notNegative("probe timeout", o.ProbeTimeout),
		notNegative("probes at a time", o.Probes),
	)...)
}

// buckets is how many steps the sliding window moves in.
const buckets = 10

// bucket is the length of one step, never 0.
func (o BreakOptions) bucket() time.Duration { return max(o.Window/buckets, time.Millisecond) }
