package verdict

import (
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// Verdict says whether the candidate may take the place of the reference.
type Verdict string

// The verdicts.
const (
	// Pass: enough was compared, and nothing that matters differs.
	Pass Verdict = "PASS"
	// Fail: something differs, more often than it may.
	Fail Verdict = "FAIL"
	// Inconclusive: more comparisons are needed, the candidate prevented too many, or findings
	// must be judged. It never promotes.
	Inconclusive Verdict = "INCONCLUSIVE"
)

// ExitCode is the exit status of portico canary verdict: 0, 1 or 2.
func (v Verdict) ExitCode() int {
	switch v {
	case Pass:
		return 0
	case Fail:
		return 1
	default:
		return 2
	}
}

// KindUnstable is the kind of findings of differences that went away although nothing was written.
const KindUnstable = "unstable"

// OperationVerdict judges the comparisons of one operation, or of all together.
type OperationVerdict struct {
	// Operation is empty for all together.
	Operation mapping.Operation `json:"operation,omitempty"`
	Verdict   Verdict           `json:"verdict"`
	Compared  int64             `json:"compared"`
	// Confirmed is how many comparisons count as mismatches now: those with a finding
	// that is open, however many it has.
	Confirmed int64 `json:"confirmed"`
	// Unstable are those of Confirmed whose open findings are all of differences that
	// were gone in the second responses of both, although nothing was written.
	Unstable int64 `json:"unstable"`
	// Transient is explained by a write, Noisy differs between two responses of one
	// tracker, Accepted was excused by a judgement, Dropped was never compared.
	Transient int64 `json:"transient"`
	Noisy     int64 `json:"noisy"`
	Accepted  int64 `json:"accepted"`
	Dropped   int64 `json:"dropped"`
	// Failed are the comparisons in which the candidate gave no reply to the first request,
	// or one that says that it does not work, and ErrorRate is their share of Compared.
	Failed    int64   `json:"failed"`
	ErrorRate float64 `json:"error_rate"`
	// Prevented are those of Dropped that are the candidate's fault: it could not be
	// reached, or had to be left alone.
	Prevented int64 `json:"prevented"`
	// Unlisted are those of Confirmed with a finding that is not kept, because there
	// are too many others.
	Unlisted int64 `json:"unlisted,omitempty"`
	// Since is set where the comparisons started again from zero, since a finding was marked fixed.
	Since time.Time `json:"since,omitzero"`
	// Rate is Confirmed of Compared, and UpperBound the rate that the true one is
	// below at 95 % confidence, without those of Transient; both are shares from 0 to 1.
	Rate       float64 `json:"rate"`
	UpperBound float64 `json:"upper_bound"`
	// Needed is how many more comparisons without a mismatch take UpperBound, and the
	// share of Prevented, to the target.
	Needed int64 `json:"needed"`
	// Ratio is how many times as long the other tracker took, at the median; 0 when unknown.
	Answered Quantiles `json:"answered"`
	Other    Quantiles `json:"other"`
	Ratio    float64   `json:"ratio"`
	// Reasons say in words why the verdict is not PASS.
	Reasons []string `json:"reasons,omitempty"`
}

// RuleState says whether a rule does anything.
type RuleState string

// The states of rules.
const (
	RuleActive  RuleState = "active"
	RuleUnused  RuleState = "never hit"
	RuleExpired RuleState = "expired"
)

// RuleView is an equivalence with its use.
type RuleView struct {
	compare.Equivalence
	State RuleState `json:"state"`
	Hits  int64     `json:"hits"`
	Last  time.Time `json:"last,omitzero"`
}

// TimePoint is what happened in one stretch of the time line.
type TimePoint struct {
	At        time.Time `json:"at"`
	Compared  int64     `json:"compared"`
	Confirmed int64     `json:"confirmed"`
	Transient int64     `json:"transient"`
	Noisy     int64     `json:"noisy"`
	Dropped   int64     `json:"dropped"`
	// Answered and Other are the latencies of the reference and of the candidate.
	Answered Quantiles `json:"answered"`
	Other    Quantiles `json:"other"`
}

// Report is everything that was found out.
type Report struct {
	At       time.Time      `json:"at"`
	Campaign state.Campaign `json:"campaign"`
	Pair     upstream.Sides `json:"pair"`
	Verdict  Verdict        `json:"verdict"`
	// Target is the share of mismatches that is allowed, from 0 to 1.
	Target     float64            `json:"target"`
	Overall    OperationVerdict   `json:"overall"`
	Operations []OperationVerdict `json:"operations"`
	Findings   []state.Finding    `json:"findings"`
	Rules      []RuleView         `json:"rules"`
	Dropped    map[string]int64   `json:"dropped,omitempty"`
	Timeline   []TimePoint        `json:"timeline,omitempty"`
}

// Unfinished says that not all was compared that should have been: what there is may fail a candidate, and does not pass it.
func (r *Report) Unfinished(reason string) {
	if r.Verdict == Pass {
		r.Verdict, r.Overall.Verdict = Inconclusive, Inconclusive
	}
	r.Overall.Reasons = append(r.Overall.Reasons, reason)
}
