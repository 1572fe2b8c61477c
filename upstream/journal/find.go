package journal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"portico/mapping"
	"portico/upstream/state"
)

// find looks for what the write would make. Without an earlier attempt only the object with the client's id counts, which a copy of the
// data has brought; after an attempt, whatever was not there before it. Several that fit park the entry.
func (s *step) find(ctx context.Context, at side, present []thing) (id int64, found bool, err error) {
	if update := s.call.UpdateAttachments; update != nil && !hasComment(update) {
		return 0, s.entry.Attempt != nil && s.hasNewFlags(present), nil
	}
	last, client := s.last(), objectID(strings.TrimPrefix(s.entry.Made, "flag "))
	isNew := func(one thing) bool {
		return one.ID == client || s.entry.Attempt != nil && !slices.Contains(last.Known, one.ID)
	}
	fit, err := s.fitting(ctx, at, present, isNew)
	switch {
	case err != nil || len(fit) == 0:
		return 0, false, err
	case len(fit) > 1:
		s.park("%d new objects at %s look alike, among them %d and %d; look which one is the copy", len(fit), s.entry.Receiver, fit[0].ID, fit[1].ID)
		return 0, false, nil
	}
	return fit[0].ID, true, nil
}

// fitting lists the objects that the write would have made: an attachment with its name, summary and content, a flag type with
// its name and description, or a comment that has its text.
func (s *step) fitting(ctx context.Context, at side, present []thing, among func(thing) bool) (fit []thing, err error) {
	for _, one := range present {
		if !among(one) {
			continue
		}
		same := false
		switch create, update := s.call.CreateAttachment, s.call.UpdateAttachments; {
		case update != nil: // trackers put before it what it is about, and a copy may have the name of its caller after it
			same = strings.Contains(one.Description, strings.TrimSpace(*update.Comment))
		case create == nil:
			same = sameText(s.call.CreateFlagType.Name, one.Name) && sameText(s.call.CreateFlagType.Description, one.Description)
		case sameText(create.FileName, one.FileName) && sameText(create.Summary, one.Summary):
			same, err = at.hasContent(ctx, one.ID, create.Data)
		}
		if err != nil {
			return nil, err
		}
		if same {
			fit = append(fit, one)
		}
	}
	return fit, nil
}

func sameText(sent *string, shown string) bool {
	return sent != nil && strings.TrimSpace(*sent) == strings.TrimSpace(shown)
}

// hasNewFlags reports whether each flag that an update sets anew is there since the last attempt.
func (s *step) hasNewFlags(present []thing) bool {
	last := s.last()
	added := slices.DeleteFunc(slices.Clone(present), func(one thing) bool { return slices.Contains(last.Known, one.ID) })
	for _, flag := range s.call.UpdateAttachments.Flags {
		if flag.New == nil || !*flag.New {
			continue
		}
		i := slices.IndexFunc(added, func(one thing) bool {
			return (flag.Name == nil || *flag.Name == one.Name) && flag.Status == one.Status && (flag.Requestee == nil || *flag.Requestee == one.Requestee)
		})
		if i < 0 {
			return false
		}
		added = slices.Delete(added, i, i+1)
	}
	return true
}

// resolve finds out whether the target has carried out a write whose outcome is unknown.
func (s *step) resolve(ctx context.Context) {
	const decide = "it is not known whether %s has carried it out; look there, then retry (copy it) or skip it"
	at, ok := s.side(s.entry.Target)
	if !ok || !s.open() {
		return
	}
	defer s.closeContent()
	if s.call.UpdateAttachments != nil || s.call.UpdateFlagTypes != nil {
		s.park(decide, s.entry.Target)
		return
	}
	present, err := at.present(ctx, s.call)
	if errors.Is(err, errNoPlace) {
		s.park(decide, s.entry.Target)
		return
	}
	if err != nil {
		s.failed(err)
		return
	}
	fit, err := s.fitting(ctx, at, present, func(one thing) bool { return !one.before(s.entry.Begun) })
	if err != nil {
		s.failed(err)
		return
	}
	var unclaimed []thing
	for _, one := range fit {
		claimed, err := s.journal.store.JournalMade(ctx, s.madeLane(one.ID), s.entry.Target)
		if err != nil {
			s.again(false, err)
			return
		}
		if !claimed {
			unclaimed = append(unclaimed, one)
		}
	}
	switch len(unclaimed) {
	case 0:
		s.entry.Status, s.entry.Reason = state.JournalRefused, "the target does not have it"
	case 1:
		s.entry.Status, s.entry.Reason, s.entry.Made = state.JournalPending, "", s.madeLane(unclaimed[0].ID)
	default:
		s.park(decide, s.entry.Target)
	}
}

// madeLane names the object that the create has made.
func (s *step) madeLane(id int64) string {
	if s.call.CreateFlagType != nil {
		return flagTypeLane(id)
	}
	return attachmentLane(id)
}

// before reports whether an object was made before a time. Clocks may differ by a minute.
func (t thing) before(at time.Time) bool {
	made, err := time.Parse(time.RFC3339, t.Created)
	return err == nil && made.Before(at.Add(-time.Minute))
}

// learnSetFlags learns the ids of flags that a write has set, from what both trackers show of the attachment.
func (s *step) learnSetFlags(ctx context.Context, at side) error {
	var sent []mapping.FlagChange
	id := objectID(s.entry.Lane)
	switch {
	case s.call.CreateAttachment != nil:
		sent, id = s.call.CreateAttachment.Flags, objectID(s.entry.Made)
	case s.call.UpdateAttachments != nil:
		sent = s.call.UpdateAttachments.Flags
	}
	if len(sent) == 0 || s.settings.Pairs == nil {
		return nil
	}
	target, ok := s.side(s.entry.Target)
	if !ok {
		return nil // the entry is parked
	}
	if err := s.addLearned(ctx); err != nil || s.contradicted {
		return err
	}
	clients, err := target.flags(ctx, id)
	if err != nil {
		return err
	}
	copies, err := at.flags(ctx, id)
	if err != nil {
		return err
	}
	for client, shown := range matchFlags(clients, copies) {
		s.learn("flag", client, shown)
	}
	return nil
}

// learnFlags learns the ids of flags that an update names and that the receiver does not show. A flag that was cleared at the target before its copy
// was made is the only one at the receiver that the target does not show. Where there is none, nothing is left to clear.
func (s *step) learnFlags(ctx context.Context, at side) error {
	update := s.call.UpdateAttachments
	names := func(change mapping.FlagChange) bool { return change.ID != nil }
	if update == nil || s.settings.Pairs == nil || !slices.ContainsFunc(update.Flags, names) {
		return nil
	}
	target, ok := s.side(s.entry.Target)
	if !ok {
		return nil // the entry is parked
	}
	clients, err := target.flags(ctx, update.IDs[0])
	if err != nil {
		return err
	}
	copies, err := at.flags(ctx, update.IDs[0])
	if err != nil {
		return err
	}
	matched := matchFlags(clients, copies)
	free := slices.DeleteFunc(slices.Clone(copies), func(one thing) bool {
		used := hasID(clients, one.ID) || slices.ContainsFunc(update.Flags, func(change mapping.FlagChange) bool { return names(change) && *change.ID == one.ID })
		for _, shown := range matched {
			used = used || shown == one.ID
		}
		return used
	})
	var flags []mapping.FlagChange
	for _, change := range update.Flags {
		if !names(change) || hasID(copies, *change.ID) {
			flags = append(flags, change)
			continue
		}
		shown, known := matched[*change.ID]
		if !known && len(free) == 1 {
			shown, known = free[0].ID, true
			free = nil
		}
		switch {
		case known:
			s.learn("flag", *change.ID, shown)
			flags = append(flags, change)
		case len(free) == 0 && change.Status == "X":
		default:
			s.park("flag %d of the attachment is not known at %s", *change.ID, s.entry.Receiver)
			return nil
		}
	}
	update.Flags = flags
	return s.addLearned(ctx)
}

// addLearned adds the ids that were learned before the entry is stored: what is asked next needs them.
func (s *step) addLearned(ctx context.Context) error {
	if len(s.learned) == 0 {
		return nil
	}
	return s.added(s.journal.store.AddIDs(ctx, s.learned))
}

func hasID(list []thing, id int64) bool {
	return slices.ContainsFunc(list, func(one thing) bool { return one.ID == id })
}

// matchFlags matches flags without a common id: by type, status and requestee first. Flags that are alike may be matched in any way. What is left is
// matched by type where there is one of it on each side.
func matchFlags(clients, copies []thing) map[int64]int64 {
	left := slices.DeleteFunc(slices.Clone(clients), func(one thing) bool { return hasID(copies, one.ID) })
	free := slices.DeleteFunc(slices.Clone(copies), func(one thing) bool { return hasID(clients, one.ID) })
	matched := map[int64]int64{}
	alike := func(a, b thing) bool { return a.Name == b.Name && a.Status == b.Status && a.Requestee == b.Requestee }
	sameType := func(a, b thing) bool {
		count := func(list []thing) (n int) {
			for _, one := range list {
				if one.Name == a.Name {
					n++
				}
			}
			return n
		}
		return a.Name == b.Name && count(left) == 1 && count(free) == 1
	}
	for _, fits := range []func(a, b thing) bool{alike, sameType} {
		for _, client := range slices.Clone(left) {
			i := slices.IndexFunc(free, func(one thing) bool { return fits(client, one) })
			if i < 0 {
				continue
			}
			matched[client.ID] = free[i].ID
			free = slices.Delete(free, i, i+1)
			left = slices.DeleteFunc(left, func(one thing) bool { return one.ID == client.ID })
		}
	}
	return matched
}
