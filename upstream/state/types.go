package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"portico/mapping"
)

// Errors that callers tell apart.
var (
	// ErrNotFound says that there is nothing under the given name.
	ErrNotFound = errors.New("there is no such entry")
	// ErrNewer says that a later version of Portico has changed the form of the
	// database.
	ErrNewer = errors.New("the database belongs to a newer version of Portico")
)

// ConflictError says that another process has revised the rules meanwhile.
type ConflictError struct {
	// Present is what counts; its zero value says that nothing was ever revised.
	Present Revision
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("the rules are at version %d by now, which %q has made", e.Present.Version, e.Present.Actor)
}

// FindingStatus is the operators' judgement of a finding.
type FindingStatus string

// The statuses of a finding.
const (
	StatusOpen     FindingStatus = "open"
	StatusAccepted FindingStatus = "accepted"
	StatusFixed    FindingStatus = "fixed"
)

// Finding is a difference between two trackers that was seen once or more often.
type Finding struct {
	// Signature is the key of everything about it: a hex digest of operation, class
	// and path.
	Signature string            `json:"signature"`
	Operation mapping.Operation `json:"operation"`
	Class     string            `json:"class"`
	Path      string            `json:"path"`
	// Kind is "reply", "plan", "readback", "latency", "isolated" or "unstable".
	Kind string `json:"kind"`
	// Count is how often it was seen, and for RecordFindings how often more.
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Note is one bounded sentence for operators.
	Note   string        `json:"note,omitempty"`
	Status FindingStatus `json:"status"`
	// Actor, Reason and Until are of the last judgement, also when it is over. The
	// zero Until has no end.
	Actor  string    `json:"actor,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Changed is when Status became what it is.
	Changed time.Time `json:"-"`
	// Samples is how many are kept.
	Samples int `json:"samples"`
	// Scopes are those for which it was seen, at most 50; the Store keeps the first ones.
	Scopes []Scope `json:"scopes,omitempty"`
}

// Scope is for whom a finding was seen: the name of a caller and a product. Either may be empty.
type Scope struct {
	Caller  string `json:"caller,omitempty"`
	Product string `json:"product,omitempty"`
}

// Sample is one of the comparisons in which a finding was seen.
type Sample struct {
	ID        int64     `json:"id"`
	Signature string    `json:"-"`
	At        time.Time `json:"at"`
	// Text says what the difference was.
	Text json.RawMessage `json:"sample"`
}

// Tally sums up the comparisons of one operation in one minute.
type Tally struct {
	// At is the minute's begin, or the moment in it since which the comparisons of the
	// operation count anew.
	At              time.Time
	Answered, Other string
	Operation       mapping.Operation
	// Confirmed is the number of comparisons with a confirmed difference that
	// no operator has accepted.
	Compared, Same, Noisy, Transient, Confirmed, Accepted int64
	// Failed are those of Transient where the candidate had failed to respond.
	Failed int64
	// Mismatches are the comparisons with a confirmed difference, accepted or not, by
	// the signatures of their findings: sorted, with commas between, or AnyMismatch.
	Mismatches map[string]int64
	// Dropped is the number of comparisons that were not made, by reason.
	Dropped map[string]int64
	// AnsweredLatency and OtherLatency are the counts of histograms, whose bounds the
	// caller defines.
	AnsweredLatency, OtherLatency []int64
}

// RuleUse is how often an equivalence rule has accepted a difference.
type RuleUse struct {
	Name string
	Hits int64
	Last time.Time
}

// Campaign is the time since when comparisons count.
type Campaign struct {
	Started time.Time `json:"started,omitzero"`
	Actor   string    `json:"actor,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// Sources of a Revision: the configuration, or an operator at the admin listener.
const (
	SourceConfig = "config"
	SourceAdmin  = "admin"
)

// Revision is one version of the table of rules.
type Revision struct {
	// Version counts from 1.
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	// Base is the digest of the configured table that it was made on.
	Base string `json:"-"`
	// Source is SourceConfig or SourceAdmin.
	Source string `json:"source"`
	// Table is JSON.
	Table  []byte `json:"-"`
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Record is one entry of the audit trail.
type Record struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`
	Subject string    `json:"subject,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	// Detail is JSON, or nil.
	Detail []byte `json:"-"`
}
