package made

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"portico/mapping"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// Switchover is a switchover in the middle of a move. It is a desk of the pages. Its methods are safe for concurrent use.
type Switchover struct {
	mu        sync.Mutex
	table     switchover.Table
	revisions []state.Revision // the oldest first
}

// NewSwitchover makes a switchover as of a time.
func NewSwitchover(now time.Time) *Switchover {
	s := &Switchover{}
	begin := switchover.Table{Rules: []switchover.Rule{{Name: "everything", Reads: switchover.PhaseOldCompare, Writes: switchover.PhaseOld}}}
	s.revise(begin, state.SourceConfig, "", "", now.Add(-72*time.Hour))
	share := 10.0
	more := begin
	more.Rules = []switchover.Rule{
		{Name: "webshop", Products: []string{"WebShop"}, Reads: switchover.PhaseNewCompare, Writes: switchover.PhaseOldCompare},
		{Name: "a tenth of the bots", Callers: []string{"ci-bot"}, UserAgents: []string{"mylyn*"}, Operations: []mapping.Operation{mapping.OpFlagTypes}, Percent: &share, Reads: switchover.PhaseNew, Writes: switchover.PhaseNew},
		begin.Rules[0],
	}
	s.revise(more, state.SourceAdmin, "ada", "WebShop reads from the candidate since Monday’s release.", now.Add(-2*time.Hour))
	return s
}

func (s *Switchover) revise(table switchover.Table, source, actor, reason string, at time.Time) {
	text, _ := json.Marshal(table) // a Table is always JSON
	s.table = table
	s.revisions = append(s.revisions, state.Revision{
		Version: int64(len(s.revisions) + 1), Source: source, Table: text, Actor: actor, Reason: reason, At: at,
	})
}

// Status implements pages.SwitchoverDesk.
func (s *Switchover) Status(context.Context) switchover.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.revisions[len(s.revisions)-1]
	status := switchover.Status{
		Old: "current", New: "candidate", Version: last.Version, Source: last.Source, Actor: last.Actor, Reason: last.Reason, Changed: last.At,
		Killed: s.table.Killed, Table: s.table, Followed: 41, Split: 3, Refused: 1, Lookups: 212,
		Passthrough: switchover.PhasePair{Reads: switchover.PhaseOldCompare, Writes: switchover.PhaseOld},
	}
	for i, rule := range s.table.Rules {
		status.Rules = append(status.Rules, switchover.RuleStatus{Rule: rule, Hits: map[string]int64{"current": int64(90_412 / (i + 1)), "candidate": int64(1_200 * i)}})
	}
	return status
}

// History implements pages.SwitchoverDesk.
func (s *Switchover) History(_ context.Context, limit int) ([]state.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := slices.Clone(s.revisions)
	slices.Reverse(newest)
	return newest[:min(limit, len(newest))], nil
}

// Change implements pages.SwitchoverDesk.
func (s *Switchover) Change(_ context.Context, version int64, table switchover.Table, actor, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.revisions[len(s.revisions)-1]
	if version != last.Version {
		return &switchover.ConflictError{Expected: version, Present: last.Version, Actor: last.Actor, At: last.At}
	}
	if len(table.Rules) == 0 || table.Rules[len(table.Rules)-1].Conditional() {
		return &switchover.InvalidError{Problems: []switchover.Problem{{Rule: -1, Message: "the last rule must have no conditions"}}}
	}
	s.revise(table, state.SourceAdmin, actor, reason, last.At.Add(time.Minute))
	return nil
}

// Kill implements pages.SwitchoverDesk.
func (s *Switchover) Kill(_ context.Context, actor, reason string) error {
	s.throw(&switchover.Kill{Actor: actor, Reason: reason}, actor, reason)
	return nil
}

// Revive implements pages.SwitchoverDesk.
func (s *Switchover) Revive(_ context.Context, actor, reason string) error {
	s.throw(nil, actor, reason)
	return nil
}

func (s *Switchover) throw(kill *switchover.Kill, actor, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.revisions[len(s.revisions)-1].At.Add(time.Minute)
	table := s.table
	if table.Killed = kill; kill != nil {
		kill.At = at
	}
	s.revise(table, state.SourceAdmin, actor, reason, at)
}
