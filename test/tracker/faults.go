package tracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// FaultKind is a way to fail.
type FaultKind string

// Faults before the operation: it is not executed.
const (
	FaultError500    FaultKind = "error500"        // an HTML page with status 500
	FaultHTML200     FaultKind = "html200"         // an HTML page with status 200
	FaultEmpty200    FaultKind = "empty200"        // status 200 without type and body
	FaultHangBefore  FaultKind = "hang-before"     // nothing is ever answered
	FaultResetBefore FaultKind = "reset-before"    // the connection is reset
	FaultInternal    FaultKind = "100500-with-201" // an error body under the status of success
	FaultBadStatus   FaultKind = "bad-status"      // a malformed status line
)

// Faults in the answer: the operation is executed first.
const (
	FaultHangAfterHeaders  FaultKind = "hang-after-headers"  // the body never comes
	FaultDrip              FaultKind = "drip"                // the body comes byte by byte
	FaultResetAfterHeaders FaultKind = "reset-after-headers" // a reset instead of the body
	FaultResetMidBody      FaultKind = "reset-mid-body"      // a reset in the middle of the body
	FaultTruncateJSON      FaultKind = "truncate-json"       // half of the JSON, well framed
	FaultWrongLength       FaultKind = "wrong-length"        // a Content-Length that is too large
	FaultGzipLie           FaultKind = "gzip-lie"            // Content-Encoding: gzip, and the body is plain
	FaultWrongContentType  FaultKind = "wrong-content-type"  // JSON as text/plain
	FaultEndlessHeaders    FaultKind = "endless-headers"     // headers without end
	FaultSlow              FaultKind = "slow"                // the answer comes after a delay
	FaultCloseAfterCommit  FaultKind = "close-after-commit"  // the connection is closed without an answer
)

// FaultKinds lists all kinds.
func FaultKinds() []FaultKind {
	return []FaultKind{FaultError500, FaultHTML200, FaultEmpty200, FaultHangBefore, FaultResetBefore, FaultInternal, FaultBadStatus,
		FaultHangAfterHeaders, FaultDrip, FaultResetAfterHeaders, FaultResetMidBody, FaultTruncateJSON, FaultWrongLength, FaultGzipLie,
		FaultWrongContentType, FaultEndlessHeaders, FaultSlow, FaultCloseAfterCommit}
}

// Fault says which requests fail and how.
type Fault struct {
	// Op names an operation, "flag_type.*" those of a kind; "" and "*" are all.
	Op   string
	Kind FaultKind
	// Nth picks the nth matching request only; 0 picks all.
	Nth int
	// Percent picks a part of the matching requests by chance; 0 picks all.
	Percent int
	// Delay is the pause of slow and drip; 0 is one second and 50 ms.
	Delay time.Duration
}

// ParseFault reads a fault written as "op=flag_type.get,kind=error500,nth=3"; the parts op, nth, percent and delay may be left out.
func ParseFault(s string) (Fault, error) {
	var f Fault
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch name {
		case "op":
			f.Op = value
		case "kind":
			f.Kind = FaultKind(value)
		case "nth":
			f.Nth, err = strconv.Atoi(value)
		case "percent":
			f.Percent, err = strconv.Atoi(value)
		case "delay":
			f.Delay, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown part %q", name)
		}
		if err != nil {
			return Fault{}, fmt.Errorf("reading fault %q: %w", s, err)
		}
	}
	if !slices.Contains(FaultKinds(), f.Kind) {
		return Fault{}, fmt.Errorf("reading fault %q: unknown kind %q: known are %s", s, f.Kind, strings.Join(names(FaultKinds()), ", "))
	}
	if f.Nth < 0 || f.Percent < 0 || f.Percent > 100 || f.Delay < 0 {
		return Fault{}, fmt.Errorf("reading fault %q: nth, percent or delay is out of range", s)
	}
	return f, nil
}

// concerns tells whether a fault is about an operation.
func (f Fault) concerns(op string) bool {
	if prefix, ok := strings.CutSuffix(f.Op, "*"); ok {
		return strings.HasPrefix(op, prefix)
	}
	return f.Op == "" || f.Op == op
}

// faultList holds the faults with the number of requests that each has met.
type faultList struct {
	mu     sync.Mutex
	faults []Fault
	met    []int
}

func (l *faultList) set(faults []Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults, l.met = slices.Clone(faults), make([]int, len(faults))
}

// pick gives the first fault that hits a request.
func (l *faultList) pick(op string) (Fault, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.faults {
		if !f.concerns(op) {
			continue
		}
		l.met[i]++
		if (f.Nth == 0 || f.Nth == l.met[i]) && (f.Percent == 0 || rand.IntN(100) < f.Percent) {
			return f, true
		}
	}
	return Fault{}, false
}
