package switchover

import (
	"context"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// isMoving reports whether writes that a rule decides wait, because the next rules send them to the other tracker. A kill that the store does not
// have yet ends the wait.
func (r *ruleSet) isMoving(rule *Rule) bool {
	return r.killed == r.source.Killed && slices.Contains(r.source.Moving, rule.Name)
}

// enter registers a write. It returns false if other rules are in force by now, so that the write has to be decided again, or if the write
// has to wait until other rules are in force.
func (s *Switchover) enter(info *callInfo) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.rules.Load() != info.ruleSet || slices.ContainsFunc(info.mayDecide, info.isMoving) {
		return false
	}
	for _, rule := range info.mayDecide {
		s.inFlight[rule.Name]++
	}
	return true
}

// leave ends a write. The tracker may still carry out one whose outcome is unknown.
func (s *Switchover) leave(info *callInfo, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for _, rule := range info.mayDecide {
		s.inFlight[rule.Name]--
		if err != nil && !upstream.NotWritten(err) && !info.recorded {
			s.unknown[rule.Name] = s.now().Add(info.UnknownOutcome)
		}
	}
}

// left returns how many writes that a change moves are under way, and until when those with an unknown outcome may be carried out. Writes of
// rules that are gone count too. Where nothing is moving all writes count.
func (s *Switchover) left(rules *ruleSet, moving []string) (count int, unknown time.Time) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for name, underWay := range s.inFlight {
		known := slices.ContainsFunc(rules.source.Rules, func(rule Rule) bool { return rule.Name == name })
		if known && len(moving) > 0 && !slices.Contains(moving, name) {
			continue
		}
		count += underWay
		if s.unknown[name].After(unknown) {
			unknown = s.unknown[name]
		}
	}
	return count, unknown
}

// begin decides a write and waits while a change of the rules moves it. When other rules come into force meanwhile it decides
// again, for a kill must not wait for a tracker that hangs. The caller calls leave at the end.
func (s *Switchover) begin(ctx context.Context, info *callInfo, call *upstream.Call) ([]route, error) {
	patient, cancel := context.WithTimeout(ctx, s.timing.hold)
	defer cancel()
	for {
		info.ruleSet, info.mayDecide, info.begun = s.rules.Load(), nil, s.now()
		deciding, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(info.current, cancel)
		routes, err := s.decideWrite(deciding, info, call)
		stop()
		cancel()
		if err == nil {
			err = s.mayWrite(info)
		} else if info.current.Err() != nil && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, one := range routes {
			info.mayDecide = append(info.mayDecide, one.mayDecide...)
		}
		if s.enter(info) {
			return routes, nil
		}
		select {
		case <-info.current.Done():
		case <-patient.Done():
			return nil, mapping.TryLater(mapping.ReasonSwitchover, patient.Err(), "This write is being moved to the other tracker; nothing was changed. Try again.")
		}
	}
}

// mayWrite returns an error unless this process knows which rules are in force, and has known that since the write was decided. After a kill that
// does not matter.
func (s *Switchover) mayWrite(info *callInfo) error {
	alive := s.alive.Load()
	if info.killed != nil || s.now().Before(alive.until) && !info.begun.Before(alive.since) {
		return nil
	}
	return mapping.TryLater(mapping.ReasonSwitchover, nil,
		"Portico does not reach its store, or did not for a while, and another process may have moved this write to the other tracker; nothing was changed. Try again.")
}
