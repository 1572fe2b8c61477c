package switchover

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// Locator finds out what a rule needs to know and a request does not say. It asks
// one tracker with the caller's own credential. Errors are those of
// upstream.Tracker.
type Locator interface {
	// Bug tells where a bug belongs, by id or alias. Codes: 100, 101, 102.
	Bug(ctx context.Context, caller upstream.Caller, ref string) (mapping.Place, error)
	// AttachmentBug tells which bug an attachment hangs on, 0 when there is no such
	// attachment. Codes: 102, 304.
	AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (int64, error)
	// FlagTypePlaces tells which products the caller sees, and where in them flag
	// types apply: one list for each of ids and then for each of names, nil for what
	// is not seen anywhere.
	FlagTypePlaces(ctx context.Context, caller upstream.Caller, ids []int64, names []string) (products []string, places []mapping.Scopes, err error)
}

// Observer is told what the switchover does. Every text it gets is from a small
// fixed set or from the configuration. Functions that are nil are not called.
type Observer struct {
	// Routed is told of each call, or part of one, which rule sent it to which
	// tracker.
	Routed func(operation mapping.Operation, rule, tracker string)
	// Refused is told of each write that no one tracker could carry out.
	Refused func(operation mapping.Operation)
	// Looked is told of each lookup: bug, attachment or flag_type, and found, absent,
	// hidden or failed.
	Looked func(what, outcome string)
	// Changed is told when another version of the rules counts.
	Changed func(version int64, killed bool)
}

// Options configure a Switchover. Old, New, Trackers and Table are required.
type Options struct {
	// Old and New name the trackers that the phases speak of.
	Old, New string
	// Trackers are both of them by their names.
	Trackers map[string]upstream.Tracker
	// Locate looks things up in them, by the same names. Where one is missing,
	// nothing is known of what a request does not say.
	Locate map[string]Locator
	// Table is the configured one.
	Table Table
	// CallerNames are the names that rules may use, Caller finds the one that a
	// caller has; empty is none.
	CallerNames []string
	Caller      func(upstream.Caller) string
	// Shadow is told of answers in the phases that compare; nil is nobody.
	Shadow upstream.Shadow
	// Memory outlives the Switchover; nil is one of its own.
	Memory *Memory
	// Store keeps the revisions; nil keeps them in Memory.
	Store *state.Store
	// Follow is how long a caller's reads follow its own writes; default is a
	// minute, negative is not at all.
	Follow time.Duration
	// Doubt is how long a tracker may still carry out a write that nobody heard of any
	// more: until then the same object is not written at the other tracker, unless the kill
	// switch is thrown. Default is a minute, negative is not at all.
	Doubt time.Duration
	// Poll is how often the store is asked for changes made elsewhere; default is
	// a second.
	Poll time.Duration
	// StoreTimeout bounds how long the store may take with a change, and at the start;
	// default is ten seconds.
	StoreTimeout time.Duration
	// Split bounds what merging two answers may cost in memory.
	Split mapping.SplitOptions
	// Logger defaults to discarding.
	Logger   *slog.Logger
	Observer Observer
}

func (o Options) withDefaults() Options {
	if o.Memory == nil {
		o.Memory = NewMemory()
	}
	if o.Follow == 0 {
		o.Follow = time.Minute
	}
	if o.Doubt == 0 {
		o.Doubt = time.Minute
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.StoreTimeout <= 0 {
		o.StoreTimeout = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	if o.Old == o.New || o.Trackers[o.Old] == nil || o.Trackers[o.New] == nil {
		return errors.New("a switchover needs two trackers with different names")
	}
	if wrong := faults(o.Table.Problems(o.CallerNames)); len(wrong) > 0 {
		return &InvalidError{Problems: wrong}
	}
	return nil
}
