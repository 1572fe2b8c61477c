package tracker

import (
	"maps"
	"slices"
)

var opAttachmentUpdate = operation{name: "attachment.update", write: true, do: (*call).attachmentUpdate}

// attachmentEdit is one attachment being changed: a copy of it, with its flags.
type attachmentEdit struct {
	sheet *sheet
	work  *attachment
}

// attachmentUpdate changes attachments, all or none (tracker-behaviour.md section 7): first all are found and all values checked, then all are written.
func (c *call) attachmentUpdate() (any, error) {
	edits, err := c.attachmentEdits()
	if err != nil {
		return nil, err
	}
	flags, said := c.params["flags"], trim(text(c.params["comment"]))
	fields := attachmentMembers(c.params)
	for _, e := range edits {
		if err := c.editAttachment(e, fields, flags); err != nil {
			return nil, err
		}
	}
	result := []any{}
	for _, e := range edits {
		row, err := c.writeAttachment(e, said)
		if err != nil {
			return nil, err
		}
		result = append(result, row)
	}
	return object{"attachments": result}, nil
}

// attachmentMembers are the members that name fields, under their internal names.
func attachmentMembers(params object) object {
	fields := object{}
	for name, v := range params {
		switch name {
		case "ids", "flags", "comment":
		case "file_name":
			fields["filename"] = v
		case "summary":
			fields["description"] = v
		default:
			fields[name] = v
		}
	}
	return fields
}

// attachmentEdits finds the attachments: each must exist and its bug be in sight.
func (c *call) attachmentEdits() ([]attachmentEdit, error) {
	ids, err := c.idList("ids")
	if err != nil {
		return nil, err
	}
	var edits []attachmentEdit
	for _, v := range ids {
		id, ok := natural(text(v))
		switch a := c.tx.attachments.get(id); {
		case v == nil:
			return nil, fail(codeBadTarget, "the attachment id is undefined")
		case !ok:
			return nil, fail(codeNotNumeric, "the attachment id '%s' must be numeric", text(v))
		case a == nil:
			return nil, fail(codeUser, "there is no attachment %s", text(v))
		default:
			b := c.tx.bugs.get(a.bug)
			if !c.tx.seesBug(c.user, b) {
				return nil, fail(codeUser, "you may not change attachments of bug %d", b.id)
			}
			work := *a
			edits = append(edits, attachmentEdit{sheet: c.newSheet(b, &work), work: &work})
		}
	}
	return edits, nil
}

// mayEdit: the submitter, or who has editbugs and sees the attachment.
func (c *call) mayEdit(a *attachment) bool {
	return c.user.id == a.creator || (!a.private || c.insider(c.user)) && c.tx.memberNamed(c.user, editBugsGroup)
}

// editAttachment takes over fields and flags. Who may not edit may still answer a flag asked of him or change one that he set.
func (c *call) editAttachment(e attachmentEdit, fields object, flags any) error {
	changed, fresh, err := e.sheet.resolve(flags)
	if err != nil {
		return err
	}
	if c.mayEdit(e.work) {
		if err := c.setAttachmentFields(e, fields); err != nil {
			return err
		}
		return e.sheet.apply(changed, fresh)
	}
	own := slices.DeleteFunc(slices.Clone(changed), func(r flagRequest) bool {
		return r.flag.setter != c.user.id && r.flag.requestee != c.user.id
	})
	if len(fields) > 0 || len(fresh) > 0 || len(own) == 0 {
		return fail(codeUser, "you may not change attachment %d", e.work.id)
	}
	return e.sheet.apply(own, nil)
}

// setAttachmentFields sets fields in the order of their internal names, the content type last; an unknown field is code 67399.
func (c *call) setAttachmentFields(e attachmentEdit, fields object) error {
	names := slices.Sorted(maps.Keys(fields))
	if i := slices.Index(names, "content_type"); i >= 0 {
		names = append(slices.Delete(names, i, i+1), "content_type")
	}
	for _, name := range names {
		if err := c.setAttachmentField(e, name, fields[name]); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) setAttachmentField(e attachmentEdit, name string, v any) (err error) {
	a := e.work
	switch name {
	case "description":
		a.summary, err = checkSummary(v)
	case "filename":
		a.fileName, err = checkFileName(v, codeUser)
	case "is_patch":
		a.patch = truth(v)
	case "is_private":
		a.private, err = c.checkPrivate(v, a.private)
	case "content_type":
		a.contentType, err = checkContentType(v, a.patch, c.server.mojolicious())
	case "is_obsolete":
		if truth(v) && !a.obsolete {
			e.sheet.cancelRequests()
		}
		a.obsolete = truth(v)
	case "bug_flags", "is_markdown", "comment_tags":
		if !c.server.mojolicious() { // tracker-behaviour.md section 9: inputs that BMO has more
			err = errUnknownMember("an attachment", name)
		}
	default:
		err = errUnknownMember("an attachment", name)
	}
	return err
}

// writeAttachment stores one edit and gives its row of the answer. A comment alone does not move the time of the last change.
func (c *call) writeAttachment(e attachmentEdit, said string) (object, error) {
	old, a := c.tx.attachments.get(e.work.id), e.work
	changes := attachmentChanges(old, a)
	if removed, added := e.sheet.store(old.flags); removed != "" || added != "" {
		changes["flagtypes.name"] = object{"removed": removed, "added": added}
	}
	a.changed = old.changed
	if len(changes) > 0 {
		a.changed = c.tx.now
		c.tx.bugs.edit(a.bug).changed = c.tx.now
	}
	a.summary, a.contentType = cut(a.summary, columnLength), cut(a.contentType, columnLength)
	c.tx.attachments.put(a.id, a)
	if truth(said) {
		cm := comment{text: said, kind: attachmentUpdated, attachment: a.id, private: a.private}
		if err := c.addComment(c.tx.bugs.get(a.bug), cm); err != nil {
			return nil, err
		}
	}
	c.written = append(c.written, a.id)
	return object{"id": a.id, "last_change_time": stamp(a.changed), "changes": changes}, nil
}

// attachmentChanges compares two states of an attachment, under the names of the answer.
func attachmentChanges(a, b *attachment) object {
	changes := object{}
	put := into(changes)
	put("file_name", a.fileName, b.fileName)
	put("summary", a.summary, b.summary)
	put("content_type", a.contentType, b.contentType)
	put("is_patch", text(a.patch), text(b.patch))
	put("is_private", text(a.private), text(b.private))
	put("is_obsolete", text(a.obsolete), text(b.obsolete))
	return changes
}
