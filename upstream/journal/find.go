package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"portico/upstream/state"
)

// findCopy looks for the copy of the write: what it would make, and the receiver has already. Without an earlier attempt only what a copy of the data
// has brought counts: the object with the client's id, or what an update has made; after an attempt, whatever was not there before it.
func (s *step) findCopy(ctx context.Context, at side, present []thing) ([]thing, error) {
	if s.entry.Attempt == nil && !s.entry.Operation.IsCreate() {
		return s.findInDataCopy(ctx, at, present)
	}
	last, client := s.last(), objectID(s.entry.Made)
	return s.of.matches(ctx, at, slices.DeleteFunc(slices.Clone(present), func(one thing) bool {
		return one.ID != client && (s.entry.Attempt == nil || slices.Contains(last.Known, one.ID))
	}))
}

// findInDataCopy looks for what an update has made in a copy of the data that was made while copying was paused. There it has the time that it has at
// the target. Where the update may have made one of several things there, it counts as brought when the receiver has all of them: what is made twice
// is less bad than what is lost.
func (s *step) findInDataCopy(ctx context.Context, at side, present []thing) ([]thing, error) {
	if waited, err := s.journal.store.JournalWaited(ctx, s.entry.Begun); err != nil || !waited {
		return nil, err
	}
	shown, made, err := s.madeAtTarget(ctx)
	if err != nil {
		return nil, targetError{err}
	}
	if len(made) == 0 {
		return nil, nil
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
			return other.madeAt() == one.madeAt() && other.Name == one.Name && !hasID(had, other.ID)
		})
		if i < 0 {
			return nil, nil
		}
		had = append(had, present[i])
	}
	fit, err := s.of.matches(ctx, at, had)
	return fit[:min(1, len(fit))], err
}

// madeAtTarget returns what the target shows from the time of the write on, and what of that the write may have made.
func (s *step) madeAtTarget(ctx context.Context) (shown, made []thing, err error) {
	target, err := s.side(s.entry.Target)
	if err != nil {
		return nil, nil, err
	}
	all, err := s.of.present(ctx, target)
	for _, skew := range []time.Duration{0, maxSkew} { // the clock of the target may be wrong
		if err == nil && len(made) == 0 {
			shown = from(all, s.entry.Begun.Add(-skew))
			made, err = s.of.matches(ctx, target, slices.Clone(shown))
		}
	}
	return shown, made, err
}

// maxSkew is how much earlier a tracker with a wrong clock may date what a write has made. Where that could be a create, an operator is asked.
const maxSkew = 24 * time.Hour

// resolve finds out whether the target has carried out a write whose outcome is unknown. An update makes nothing that could be found.
func (s *step) resolve(ctx context.Context, at side) error {
	const decide = "it is not known whether %s has carried it out; look there, then retry (%s) or skip it"
	if !s.entry.Operation.IsCreate() {
		return parkErrorf(decide, s.entry.Target, "copy it")
	}
	undecided := parkErrorf(decide, s.entry.Target, "look again")
	shown, err := s.of.present(ctx, at)
	if errors.Is(err, errNoPlace) {
		return undecided
	}
	if err != nil {
		return err
	}
	shown = from(shown, s.entry.Begun.Add(-maxSkew))
	fit, err := s.of.matches(ctx, at, slices.Clone(shown))
	if err != nil {
		return err
	}
	unclaimed, uncertain, err := s.unclaimed(ctx, shown, fit)
	switch {
	case err != nil:
		s.again(false, err)
	case len(unclaimed) == 1:
		s.entry.Status, s.entry.Reason, s.entry.Made = state.JournalPending, "", laneOf(s.of.kind, unclaimed[0].ID)
	case len(unclaimed) == 0 && !uncertain:
		s.entry.Status, s.entry.Reason = state.JournalRefused, "the target does not have it"
	default:
		return undecided
	}
	return nil
}

// unclaimed lists the things that fit a create and that no entry has made. If uncertain, there are others that it may have made, because the tracker has a
// wrong clock, or has changed what it was sent. An error is that of the store.
func (s *step) unclaimed(ctx context.Context, shown, fit []thing) (list []thing, uncertain bool, err error) {
	for _, one := range shown {
		fits, early := hasID(fit, one.ID), one.before(s.entry.Begun)
		if !fits && (early || one.madeAt() == "") {
			continue
		}
		claimed, err := s.journal.store.JournalMade(ctx, laneOf(s.of.kind, one.ID))
		switch {
		case err != nil:
			return nil, false, err
		case claimed:
		case fits && !early:
			list = append(list, one)
		default:
			uncertain = true
		}
	}
	return list, uncertain, nil
}
