package journal

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"portico/mapping"
	"portico/upstream/state"
)

// learn notes under which id the receiver shows an object. The error is a parkError where that cannot be.
func (s *step) learn(kind string, client, shown int64) error {
	if client == shown {
		return nil
	}
	if s.settings.Pairs == nil {
		return parkErrorf("it is copied, but %s %d has the id %d at %s, and switchover.ids translates none", kind, client, shown, s.entry.Receiver)
	}
	pair, err := s.settings.Pairs.Pair(kind, client, s.entry.Receiver, shown)
	if err != nil {
		return parkErrorf("it is copied, but %v", err)
	}
	s.learned = append(s.learned, pair)
	return nil
}

// learnFlags learns the ids of flags that an update names and that the receiver does not show. A flag that was cleared at the target before its copy
// was made is the only one at the receiver that the target does not show. Where there is none, nothing is left to clear.
func (s *step) learnFlags(ctx context.Context, at side) error {
	sent, id := s.of.flags, objectID(s.entry.Lane)
	names := func(change mapping.FlagChange) bool { return change.ID != nil }
	if sent == nil || s.entry.Operation.IsCreate() || s.settings.Pairs == nil || !slices.ContainsFunc(*sent, names) {
		return nil
	}
	clients, copies, shown, err := s.flags(ctx, at, id)
	if err != nil {
		return err
	}
	matched, free := matchFlags(clients, copies)
	if len(free) == 0 { // a later write may have set a flag that looks like a named one
		matched, free = matchFlags(slices.DeleteFunc(clients, func(one thing) bool { return !s.namesFlag(one) }), copies)
	}
	var flags []mapping.FlagChange
	for _, change := range *sent {
		if names(change) && !hasID(shown, *change.ID) {
			copied, known := matched[*change.ID]
			if !known && len(free) == 1 {
				copied, known, free = free[0].ID, true, nil
			}
			switch {
			case known:
				if failed := s.learn("flag", *change.ID, copied); err == nil { // one that cannot be keeps no other from being learned
					err = failed
				}
			case len(free) == 0 && change.Status == "X":
				continue
			default:
				return parkErrorf("flag %d of the attachment is not known at %s", *change.ID, s.entry.Receiver)
			}
		}
		flags = append(flags, change)
	}
	*sent = flags
	if failed := s.addLearned(ctx); failed != nil {
		return failed
	}
	return err
}

// learnSetFlags learns the ids of flags that a write has set, from what both trackers show of the attachment.
func (s *step) learnSetFlags(ctx context.Context, at side) error {
	sent, id := s.of.flags, objectID(cmp.Or(s.entry.Made, s.entry.Lane))
	if sent == nil || len(*sent) == 0 || s.settings.Pairs == nil {
		return nil
	}
	if err := s.addLearned(ctx); err != nil {
		return err
	}
	clients, copies, _, err := s.flags(ctx, at, id)
	if err != nil {
		return err
	}
	clients = slices.DeleteFunc(clients, func(one thing) bool { // a later write has changed it, or has set it after another one was cleared
		return !slices.ContainsFunc(*sent, func(change mapping.FlagChange) bool { return change.Status == one.Status })
	})
	matched, _ := matchFlags(clients, copies)
	for client, shown := range matched {
		if failed := s.learn("flag", client, shown); err == nil {
			err = failed
		}
	}
	return err
}

// flags lists the flags of an attachment at the target and at the receiver that have no common id, and all that the receiver shows. Those that have the id of
// a flag which a later write has cleared are known, too.
func (s *step) flags(ctx context.Context, at side, attachment int64) (clients, copies, shown []thing, err error) {
	target, err := s.side(s.entry.Target)
	if err == nil {
		clients, err = target.flags(ctx, attachment)
	}
	if err != nil {
		return nil, nil, nil, targetError{err}
	}
	shown, err = at.flags(ctx, attachment)
	copies = slices.DeleteFunc(without(shown, clients), func(one thing) bool {
		return s.namesFlag(one) || !s.settings.Pairs.Born("flag", s.entry.Receiver, one.ID)
	})
	return without(clients, shown), copies, shown, err
}

// namesFlag reports whether the write names a flag by its id.
func (s *step) namesFlag(one thing) bool {
	return slices.ContainsFunc(*s.of.flags, func(change mapping.FlagChange) bool { return change.ID != nil && *change.ID == one.ID })
}

// addLearned adds the ids that were learned before the entry is stored: what is asked next needs them.
func (s *step) addLearned(ctx context.Context) error {
	if len(s.learned) == 0 {
		return nil
	}
	return s.added(s.journal.store.AddIDs(ctx, s.learned))
}

// added takes the error of adding the ids that were learned, and returns it: as a parkError where they contradict others.
func (s *step) added(err error) error {
	if err == nil && len(s.learned) > 0 {
		s.settings.Pairs.Added(s.learned)
	}
	s.learned = nil
	if conflict, contradicts := errors.AsType[*state.IDConflictError](err); contradicts {
		return parkErrorf("it is copied, but %v", conflict)
	}
	return err
}

// matchFlags matches flags without a common id: by type, status and requestee first. Flags that are alike may be matched in any way. What is left is
// matched by type where there is one of it on each side. free are the copies that match nothing.
func matchFlags(clients, copies []thing) (matched map[int64]int64, free []thing) {
	left, free := slices.Clone(clients), slices.Clone(copies)
	matched = map[int64]int64{}
	only := func(list []thing, name string) bool {
		list = slices.DeleteFunc(slices.Clone(list), func(one thing) bool { return one.Name != name })
		return len(list) == 1
	}
	for _, fits := range []func(a, b thing) bool{
		func(a, b thing) bool { return a.Name == b.Name && a.Status == b.Status && a.Requestee == b.Requestee },
		func(a, b thing) bool { return a.Name == b.Name && only(left, a.Name) && only(free, a.Name) },
	} {
		for _, client := range left {
			if i := slices.IndexFunc(free, func(one thing) bool { return fits(client, one) }); i >= 0 {
				matched[client.ID] = free[i].ID
				free = slices.Delete(free, i, i+1)
			}
		}
		left = slices.DeleteFunc(left, func(client thing) bool { return matched[client.ID] != 0 })
	}
	return matched, free
}
