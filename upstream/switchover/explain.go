package switchover

import (
	"context"

	"portico/mapping"
	"portico/upstream"
)

// Explain decides a call without making it. What the rules need to know is looked
// up. Errors are those that the call would have before any tracker got it.
func (s *Switchover) Explain(ctx context.Context, caller upstream.Caller, call upstream.Call) (Decision, error) {
	t := s.table.Load()
	var looked []string
	q := &question{caller: &caller, operation: call.Operation, write: call.Operation.IsWrite(), looked: &looked}
	parts, err := s.decisions(ctx, t, q, call)
	if err != nil {
		return Decision{Operation: call.Operation, Looked: looked}, err
	}
	shown := make([]Decision, len(parts))
	for i, made := range parts {
		shown[i] = s.shown(t, q, made)
	}
	decision := shown[0]
	if len(shown) > 1 {
		decision.Parts = shown
	}
	decision.Looked = looked
	return decision, nil
}

// decisions decides for the objects of a call, one list for each tracker.
func (s *Switchover) decisions(ctx context.Context, t *table, q *question, call upstream.Call) ([][]choice, error) {
	switch {
	case call.FlagTypes != nil:
		one, err := s.read(ctx, t, q, object{kind: typesObject, product: call.FlagTypes.Product, component: call.FlagTypes.Component})
		return [][]choice{{one}}, err
	case call.Attachments != nil:
		return s.readDecisions(ctx, t, q, *call.Attachments)
	default:
		made, err := s.decideCall(ctx, t, q, &call)
		return [][]choice{made}, err
	}
}

func (s *Switchover) readDecisions(ctx context.Context, t *table, q *question, request mapping.AttachmentsRequest) ([][]choice, error) {
	parts, err := s.parts(ctx, t, q, request)
	made := make([][]choice, len(parts))
	for i := range parts {
		made[i] = parts[i].made
	}
	return made, err
}

// shown gives what was decided for the objects of one tracker.
func (s *Switchover) shown(t *table, q *question, made []choice) Decision {
	first := made[0]
	rule := &t.rules[first.rule]
	decision := Decision{
		Rule: rule.Name, Index: first.rule, Reads: rule.Reads, Writes: rule.Writes, Operation: q.operation,
		Tracker: s.names[first.side], Followed: first.followed, Killed: t.killed != nil,
	}
	for _, one := range made {
		decision.Objects = append(decision.Objects, one.object.String())
	}
	if allCompared(made) {
		decision.Compared = s.names[first.side.other()]
	}
	return decision
}
