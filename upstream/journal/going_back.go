package journal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"portico/upstream/state"
)

// OutlookState says whether writes can move to a tracker without loss.
type OutlookState string

// The states of an Outlook.
const (
	// OutlookSafe says that the tracker has everything.
	OutlookSafe OutlookState = "safe"
	// OutlookDrain says that it has everything once the entries that wait are copied.
	OutlookDrain OutlookState = "drain"
	// OutlookUnsafe says that writes would be lost.
	OutlookUnsafe OutlookState = "unsafe"
	// OutlookUnknown says that Portico does not copy the writes, or cannot read the journal.
	OutlookUnknown OutlookState = "unknown"
)

// OutlookStates lists all of them.
func OutlookStates() []OutlookState {
	return []OutlookState{OutlookSafe, OutlookDrain, OutlookUnsafe, OutlookUnknown}
}

// Outlook says what becomes of the writes of one tracker when the other one takes over.
type Outlook struct {
	State OutlookState `json:"state"`
	// Drain is how many entries are copied before, and Seconds about how long that takes.
	Drain   int64   `json:"drain"`
	Seconds float64 `json:"seconds"`
	// Lost are the writes that would be lost, as far as they are listed.
	Lost []Lost `json:"lost,omitempty"`
}

// Lost is one entry, or a number of writes of one kind, that would be lost.
type Lost struct {
	// Kind is parked, unknown, blocked, paused or one of the kinds of state.JournalLoss.
	Kind    string `json:"kind"`
	What    string `json:"what"`
	Entries int64  `json:"entries"`
	Why     string `json:"why,omitempty"`
}

// String says it in one line, with the first of the writes that would be lost.
func (o Outlook) String() string {
	const maxNamed = 5
	var named []string
	for _, one := range o.Lost[:min(len(o.Lost), maxNamed)] {
		named = append(named, one.String())
	}
	if more := len(o.Lost) - maxNamed; more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	lost := strings.Join(named, "; ")
	switch o.State {
	case OutlookSafe:
		return "safe"
	case OutlookDrain:
		return fmt.Sprintf("safe after draining %s entries (about %.0f s)", humanize.Comma(o.Drain), max(1, o.Seconds))
	case OutlookUnsafe:
		return "unsafe: " + lost
	}
	return "unknown: Portico does not copy the writes of this rule, or cannot read the journal" + strings.TrimSuffix(": "+lost, ": ")
}

// String says what is lost.
func (l Lost) String() string {
	text := fmt.Sprintf("%s %s", l.Kind, l.What)
	if l.Entries > 1 {
		text += fmt.Sprintf(" (%s writes)", humanize.Comma(l.Entries))
	}
	if l.Why != "" {
		text += ": " + l.Why
	}
	return text
}

// Scope is what an Outlook is about.
type Scope struct {
	// Rule decides the writes, and Rules are the names of all present rules. What rules that are gone have decided counts for every rule.
	Rule  string
	Rules []string
	// Receiver is the tracker that would take over.
	Receiver string
	// Replicates says that the rule's writes are recorded, PassedCopied that what passes through is copied by other means.
	Replicates, PassedCopied bool
}

func (s *Scope) has(rule, receiver string) bool {
	return receiver == s.Receiver && (rule == s.Rule || !slices.Contains(s.Rules, rule))
}

// minRate is how many entries a second are taken to be copied where few had to be.
const minRate = 10

// stoppedKind is the kind of Lost for an entry that is not being copied.
func stoppedKind(status state.JournalStatus) string {
	if status == state.JournalBegun {
		return "unknown"
	}
	return "parked"
}

// Outlook tells what would be lost if writes moved to the receiver now. That is unknown of a nil status, and of one that the store did not tell.
func (s *Status) Outlook(scope Scope) (o Outlook) {
	if s == nil || s.unread {
		return Outlook{State: OutlookUnknown}
	}
	unlisted := map[string]int64{} // an entry may come further between two questions, and only some are listed
	for _, count := range s.Rules {
		switch {
		case !scope.has(count.Rule, count.Receiver):
		case count.Status != state.JournalPending:
			unlisted[stoppedKind(count.Status)] += count.Entries
		case count.Blocked:
			o.Lost = append(o.Lost, Lost{"blocked", "writes behind parked entries", count.Entries, ""})
		default:
			o.Drain += count.Entries
		}
	}
	for _, e := range s.Stopped {
		if scope.has(e.Rule, e.Receiver) {
			kind := stoppedKind(e.Status)
			unlisted[kind]--
			o.Lost = append(o.Lost, Lost{kind, fmt.Sprintf("entry %d: %s of %s", e.Seq, e.Operation, e.Lane), 1, e.Reason})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(unlisted)) {
		if n := unlisted[kind]; n > 0 {
			o.Lost = append(o.Lost, Lost{kind, "entries that are not listed", n, ""})
		}
	}
	for _, loss := range s.Losses {
		if scope.has(loss.Rule, loss.Receiver) && (loss.Kind != state.LossPassed || !scope.PassedCopied) {
			o.Lost = append(o.Lost, Lost{loss.Kind, loss.What, loss.Entries, "the last one at " + loss.Last.Format(time.RFC3339)})
		}
	}
	if s.Paused && o.Drain > 0 {
		o.Lost = append(o.Lost, Lost{"paused", "writes that wait until copying is resumed", o.Drain, ""})
	}
	o.Seconds = float64(o.Drain) / max(minRate, s.Rate)
	o.judge()
	if !scope.Replicates {
		o.State = OutlookUnknown
	}
	return o
}

// judge sets the state.
func (o *Outlook) judge() {
	switch {
	case len(o.Lost) > 0:
		o.State = OutlookUnsafe
	case o.Drain > 0:
		o.State = OutlookDrain
	default:
		o.State = OutlookSafe
	}
}

// Parts tells what waits in the journal, and may still be copied, from what never is. What is unknown is so in both.
func (o Outlook) Parts() (waiting, losses Outlook) {
	waiting = Outlook{Drain: o.Drain, Seconds: o.Seconds}
	for _, one := range o.Lost {
		if slices.Contains([]string{"parked", "unknown", "blocked", "paused"}, one.Kind) {
			waiting.Lost = append(waiting.Lost, one)
		} else {
			losses.Lost = append(losses.Lost, one)
		}
	}
	waiting.judge()
	losses.judge()
	if o.State == OutlookUnknown {
		waiting.State, losses.State = o.State, o.State
	}
	return waiting, losses
}
