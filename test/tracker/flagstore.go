package tracker

import (
	"slices"
	"strings"
)

// store writes the flags of a sheet to the attachment or the bug and tells the differences from old, as they stand in changes.
func (s *sheet) store(old []flag) (removed, added string) {
	t := s.c.tx
	before := t.sortedFlags(old)
	list := make([]flag, len(s.flags))
	for i, f := range s.flags {
		list[i] = *f
	}
	list = t.sortedFlags(list)
	for i := range list {
		s.keep(&list[i], before)
	}
	*s.owner = list
	return diff(t.summaries(before), t.summaries(list))
}

// keep gives a new flag its id and times, and a changed one its time.
func (s *sheet) keep(f *flag, before []flag) {
	t := s.c.tx
	if f.id == 0 {
		t.data.lastFlag++
		f.id, f.created, f.changed = t.data.lastFlag, t.now, t.now
		return
	}
	if i := slices.IndexFunc(before, func(b flag) bool { return b.id == f.id }); i >= 0 && before[i] != *f {
		f.changed = t.now
	}
}

// summaries are the forms in which flags are compared; the setter is part of them and is cut off when they are shown.
func (t *tx) summaries(flags []flag) []string {
	out := make([]string, len(flags))
	for i, f := range flags {
		out[i] = t.users.get(f.setter).login + ":" + t.flagTypes.get(f.flagType).name + f.status
		if f.requestee != 0 {
			out[i] += "(" + t.users.get(f.requestee).login + ")"
		}
	}
	return out
}

// diff compares two lists as multisets and keeps their order; the parts are joined by ", ".
func diff(old, new []string) (removed, added string) {
	rest := slices.Clone(old)
	var more []string
	for _, s := range new {
		if i := slices.Index(rest, s); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			more = append(more, s)
		}
	}
	return shown(rest), shown(more)
}

func shown(summaries []string) string {
	for i, s := range summaries {
		_, summaries[i], _ = strings.Cut(s, ":")
	}
	return strings.Join(summaries, ", ")
}

// settleFlags puts the flags of all bugs and attachments right when a flag type has changed (tracker-behaviour.md section 4, Side effects
// on attachments).
func (c *call) settleFlags() {
	for _, b := range c.tx.bugs.all() {
		c.settleBug(b)
	}
}

// settleBug puts the flags of a bug and of its attachments right, and gives the summaries of those that are removed.
func (c *call) settleBug(b *bug) (removed []string) {
	if len(b.flags) > 0 {
		b = c.tx.bugs.edit(b.id)
		b.flags, removed = c.settle(b.flags, targetBug, b)
	}
	for _, id := range b.attachments {
		if a := c.tx.attachments.get(id); len(a.flags) > 0 {
			kept, gone := c.settle(a.flags, targetAttachment, b)
			c.tx.attachments.edit(id).flags = kept
			removed = append(removed, gone...)
		}
	}
	return removed
}

// settle gives flags as their types allow them for a bug: where a type is not valid, its flags go to another type of the same name or away,
// and requestees go if it takes none.
func (c *call) settle(flags []flag, target string, b *bug) (kept []flag, removed []string) {
	types := c.tx.flagTypesFor(target, b.product, b.component)
	for _, f := range c.tx.sortedFlags(flags) {
		if t := c.tx.flagTypes.get(f.flagType); !t.validFor(b.product, b.component) {
			if t = c.retarget(&f, types, listed(flags)); t == nil {
				removed = append(removed, c.tx.summaries([]flag{f})...)
				continue
			}
			f.flagType = t.id
		} else if !t.requesteeble {
			f.requestee = 0
		}
		kept = append(kept, f)
	}
	return kept, removed
}

// listed gives copies of flags that may be changed.
func listed(flags []flag) []*flag {
	out := make([]*flag, len(flags))
	for i, f := range flags {
		out[i] = &f
	}
	return out
}

// retarget finds a valid type of the same name that can take a flag over.
func (c *call) retarget(f *flag, types []*flagType, others []*flag) *flagType {
	name := c.tx.flagTypes.get(f.flagType).name
	setter := c.tx.users.get(f.setter)
	return firstMatch(types, func(t *flagType) bool {
		taken := slices.ContainsFunc(others, func(o *flag) bool { return o.flagType == t.id })
		return t.name == name && t.active && (t.multiplicable || !taken) &&
			(f.status == "?" && c.tx.mayRequest(setter, t) || c.tx.mayGrant(setter, t))
	})
}

// flagObject is a flag in an answer; requestee is absent when there is none (tracker-behaviour.md section 5).
func (c *call) flagObject(f flag) object {
	o := object{
		"id": f.id, "type_id": f.flagType, "name": c.tx.flagTypes.get(f.flagType).name, "status": f.status,
		"setter": c.email(f.setter), "creation_date": stamp(f.created), "modification_date": stamp(f.changed),
	}
	if f.requestee != 0 {
		o["requestee"] = c.email(f.requestee)
	}
	return o
}
