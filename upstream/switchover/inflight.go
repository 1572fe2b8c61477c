package switchover

import (
	"context"
	"slices"
	"sync"
	"time"

	"portico/upstream"
)

// inFlight counts the writes under way by the name of the rule that decided them. A change of the rules that moves writes waits for them.
type inFlight struct {
	mu    sync.Mutex
	rules map[string]*inFlightWrites
}

// inFlightWrites are those of one rule.
type inFlightWrites struct {
	count int
	// unknown is until when a tracker may still carry out a write whose outcome is unknown.
	unknown time.Time
}

// inFlightWrite is one write.
type inFlightWrite struct {
	rules *ruleSet
	// candidates are the rules that may have decided it.
	candidates []*Rule
	// recorded says that the journal finds out an unknown outcome.
	recorded bool
}

// enter registers a write. It returns nil if other rules are in force by now, so that the write has to be decided again, or if the write
// has to wait until other rules are in force.
func (s *Switchover) enter(rules *ruleSet, candidates []*Rule) (own *inFlightWrite, held bool) {
	f := &s.inFlight
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.rules.Load() != rules {
		return nil, false
	}
	if slices.ContainsFunc(candidates, rules.holds) {
		return nil, true
	}
	for _, rule := range candidates {
		if f.rules[rule.Name] == nil {
			f.rules[rule.Name] = &inFlightWrites{}
		}
		f.rules[rule.Name].count++
	}
	return &inFlightWrite{rules: rules, candidates: candidates}, false
}

// leave ends a write. The tracker may still carry out one whose outcome is unknown.
func (s *Switchover) leave(own *inFlightWrite, err error) {
	f := &s.inFlight
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range own.candidates {
		f.rules[rule.Name].count--
		if err != nil && !upstream.NotWritten(err) && !own.recorded {
			f.rules[rule.Name].unknown = s.now().Add(own.rules.UnknownOutcome)
		}
	}
}

// left returns how many writes that a change moves are under way, and until when those with an unknown outcome may be carried out. Writes of
// rules that are gone count too.
func (s *Switchover) left(rules *ruleSet, moving []string) (count int, unknown time.Time) {
	f := &s.inFlight
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, writes := range f.rules {
		if slices.Contains(moving, name) || !slices.Contains(rules.names(), name) {
			count += writes.count
			if writes.unknown.After(unknown) {
				unknown = writes.unknown
			}
		}
	}
	return count, unknown
}

// begin decides a write and waits while a change of the rules moves it. When other rules come into force meanwhile it decides
// again, for a kill must not wait for a tracker that hangs. The caller calls leave at the end.
func (s *Switchover) begin(
	ctx context.Context, info *callInfo, decide func(context.Context, *ruleSet) ([]route, error),
) ([]route, *inFlightWrite, error) {
	patient, cancel := context.WithTimeout(ctx, s.timing.hold)
	defer cancel()
	for {
		rules := s.rules.Load()
		deciding, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(rules.current, cancel)
		routes, err := decide(deciding, rules)
		stop()
		cancel()
		switch {
		case err != nil && rules.current.Err() != nil && ctx.Err() == nil:
			continue
		case err == nil:
			err = s.mayWrite(rules)
		}
		if err != nil {
			return nil, nil, err
		}
		own, held := s.enter(rules, rules.candidates(info, routes))
		switch {
		case own != nil:
			return routes, own, nil
		case !held:
			continue
		}
		select {
		case <-rules.current.Done():
		case <-patient.Done():
			return nil, nil, tryLater("This write is being moved to the other tracker; nothing was changed. Try again.", patient.Err())
		}
	}
}

// mayWrite returns an error unless this process knows which rules are in force. After a kill that does not matter.
func (s *Switchover) mayWrite(rules *ruleSet) error {
	if rules.killed != nil || s.now().Before(*s.alive.Load()) {
		return nil
	}
	return tryLater("Portico does not reach its store, and another process may have moved this write to the other tracker; nothing was changed. Try again.", nil)
}
