package journal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream/state"
)

// find looks for what the write would make. Without an earlier attempt only what a copy of the data has brought counts: the object with the client's
// id, or what an update has made; after an attempt, whatever was not there before it.
func (s *step) find(ctx context.Context, at side, present []thing) ([]thing, error) {
	if s.entry.Attempt == nil && !s.entry.Operation.IsCreate() {
		return s.brought(ctx, at, present)
	}
	last, client := s.last(), objectID(s.entry.Made)
	return s.of.matches(ctx, at, slices.DeleteFunc(slices.Clone(present), func(one thing) bool {
		return one.ID != client && (s.entry.Attempt == nil || slices.Contains(last.Known, one.ID))
	}))
}

// brought looks for what an update has made in a copy of the data that was made while copying was paused. There it has the time that it has at the
// target. Where the update may have made one of several things there, it counts as brought when the receiver has all of them: what is made twice is
// less bad than what is lost.
func (s *step) brought(ctx context.Context, at side, present []thing) ([]thing, error) {
	if waited, err := s.journal.store.JournalWaited(ctx, s.entry.Begun); err != nil || !waited {
		return nil, err
	}
	target, ok := s.side(s.entry.Target)
	if !ok {
		return nil, nil
	}
	shown, err := s.of.present(ctx, target)
	shown = slices.DeleteFunc(shown, func(one thing) bool { return one.before(s.entry.Begun) })
	made, failed := s.of.matches(ctx, target, slices.Clone(shown))
	if err = cmp.Or(err, failed); err != nil || len(made) == 0 {
		return nil, err
	}
	if !isBlank(*s.of.comment) { // other comments may be from the same second
		shown = made
		if present, err = s.of.matches(ctx, at, slices.Clone(present)); err != nil {
			return nil, err
		}
	}
	var had []thing
	for _, one := range shown {
		i := slices.IndexFunc(present, func(other thing) bool {
			return other.made() == one.made() && other.Name == one.Name && !hasID(had, other.ID)
		})
		if i < 0 {
			return nil, nil
		}
		had = append(had, present[i])
	}
	fit, err := s.of.matches(ctx, at, had)
	return fit[:min(1, len(fit))], err
}

// maxSkew is how much earlier a tracker may date what looks like a create, because its clock is wrong, so that an operator is asked.
const maxSkew = 24 * time.Hour

// resolve finds out whether the target has carried out a write whose outcome is unknown.
func (s *step) resolve(ctx context.Context) {
	const decide = "it is not known whether %s has carried it out; look there, then retry (%s) or skip it"
	at, ok := s.side(s.entry.Target)
	if !ok || !s.open() {
		return
	}
	defer s.closeContent()
	var shown, fit []thing
	retry, err := "copy it", errNoPlace // an update makes nothing that could be found
	if s.entry.Operation.IsCreate() {
		retry = "look again"
		shown, err = s.of.present(ctx, at)
	}
	if err == nil {
		shown = slices.DeleteFunc(shown, func(one thing) bool { return one.before(s.entry.Begun.Add(-maxSkew)) })
		fit, err = s.of.matches(ctx, at, slices.Clone(shown))
	}
	switch {
	case errors.Is(err, errNoPlace):
		s.park(decide, s.entry.Target, retry)
		return
	case err != nil:
		s.failed(err)
		return
	}
	var unclaimed []thing
	doubt := false
	for _, one := range shown {
		fits, early := hasID(fit, one.ID), one.before(s.entry.Begun)
		if !fits && (early || one.made() == "") {
			continue
		}
		claimed, err := s.journal.store.JournalMade(ctx, laneOf(s.of.kind, one.ID))
		switch {
		case err != nil:
			s.again(false, err)
			return
		case claimed:
		case fits && !early:
			unclaimed = append(unclaimed, one)
		default:
			doubt = true // the tracker has a wrong clock, or has changed what it was sent
		}
	}
	switch {
	case len(unclaimed) == 1:
		s.entry.Status, s.entry.Reason, s.entry.Made = state.JournalPending, "", laneOf(s.of.kind, unclaimed[0].ID)
	case len(unclaimed) == 0 && !doubt:
		s.entry.Status, s.entry.Reason = state.JournalRefused, "the target does not have it"
	default:
		s.park(decide, s.entry.Target, retry)
	}
}

// made returns when a thing was made, as its tracker writes it.
func (t thing) made() string { return cmp.Or(t.Created, t.Set) }

// before reports whether a thing was made before a time. Clocks may differ by a minute.
func (t thing) before(at time.Time) bool {
	made, err := time.Parse(time.RFC3339, t.made())
	return err == nil && made.Before(at.Add(-time.Minute))
}

// learnSetFlags learns the ids of flags that a write has set, from what both trackers show of the attachment.
func (s *step) learnSetFlags(ctx context.Context, at side) error {
	sent, id := s.of.flags, objectID(cmp.Or(s.entry.Made, s.entry.Lane))
	if sent == nil || len(*sent) == 0 || s.settings.Pairs == nil {
		return nil
	}
	if err := s.addLearned(ctx); err != nil || s.entry.Status == state.JournalParked {
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
		s.learn("flag", client, shown)
	}
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
	if err != nil || s.entry.Status == state.JournalParked {
		return err
	}
	matched, free := matchFlags(clients, copies)
	if len(free) == 0 { // a later write may have set a flag that looks like a named one
		matched, free = matchFlags(slices.DeleteFunc(clients, func(one thing) bool { return !s.names(one) }), copies)
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
				s.learn("flag", *change.ID, copied)
			case len(free) == 0 && change.Status == "X":
				continue
			default:
				s.park("flag %d of the attachment is not known at %s", *change.ID, s.entry.Receiver)
				return nil
			}
		}
		flags = append(flags, change)
	}
	*sent = flags
	return s.addLearned(ctx)
}

// flags lists the flags of an attachment at the target and at the receiver that have no common id, and all that the receiver shows. Those that have the id of
// a flag which a later write has cleared are known, too. Without a target it parks the entry.
func (s *step) flags(ctx context.Context, at side, attachment int64) (clients, copies, shown []thing, err error) {
	target, ok := s.side(s.entry.Target)
	if !ok {
		return nil, nil, nil, nil
	}
	if clients, err = target.flags(ctx, attachment); err == nil {
		shown, err = at.flags(ctx, attachment)
	}
	copies = slices.DeleteFunc(without(shown, clients), func(one thing) bool {
		return s.names(one) || !s.settings.Pairs.Born("flag", s.entry.Receiver, one.ID)
	})
	return without(clients, shown), copies, shown, err
}

// names reports whether the write names a flag by its id.
func (s *step) names(one thing) bool {
	return slices.ContainsFunc(*s.of.flags, func(change mapping.FlagChange) bool { return change.ID != nil && *change.ID == one.ID })
}

// addLearned adds the ids that were learned before the entry is stored: what is asked next needs them.
func (s *step) addLearned(ctx context.Context) error {
	if len(s.learned) == 0 {
		return nil
	}
	_, err := s.added(s.journal.store.AddIDs(ctx, s.learned))
	return err
}

func hasID(list []thing, id int64) bool {
	return slices.ContainsFunc(list, func(one thing) bool { return one.ID == id })
}

// without lists the things of a list that another one does not have.
func without(list, other []thing) []thing {
	return slices.DeleteFunc(slices.Clone(list), func(one thing) bool { return hasID(other, one.ID) })
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
