package tracker

import (
	"encoding/base64"
	"slices"
	"strconv"
)

var (
	opAttachmentList = operation{name: "attachment.list", success: 200, do: (*call).attachments}
	opAttachmentGet  = operation{name: "attachment.get", success: 200, do: (*call).attachments}
)

// attachments reads by bug and by attachment id; both may be asked for at once (wire-facts 5).
func (c *call) attachments() (any, error) {
	bugIDs, err := c.idList("ids")
	if err != nil {
		return nil, err
	}
	ids, err := c.idList("attachment_ids")
	if err != nil {
		return nil, err
	}
	if bugIDs == nil && ids == nil {
		return nil, fail(codeParamRequired, "reading attachments needs one of the parameters ids and attachment_ids")
	}
	bugs, err := c.attachmentsByBug(bugIDs)
	if err != nil {
		return nil, err
	}
	byID, err := c.attachmentsByID(ids)
	if err != nil {
		return nil, err
	}
	return object{"bugs": bugs, "attachments": byID}, nil
}

// attachmentsByBug leaves out private ones silently, unless the caller is an insider or their submitter.
func (c *call) attachmentsByBug(bugIDs []any) (object, error) {
	out := object{}
	insider := c.insider(c.user)
	for _, id := range bugIDs {
		b, err := c.bug(id)
		if err != nil {
			return nil, err
		}
		list := []any{}
		for _, id := range b.attachments {
			a := c.tx.attachments.get(id)
			if !a.private || insider || c.user != nil && c.user.id == a.creator {
				list = append(list, c.attachmentObject(a))
			}
		}
		out[strconv.Itoa(b.id)] = list
	}
	return out, nil
}

// attachmentsByID leaves out unknown ones silently; one that the caller may not see fails the whole, for its submitter too.
func (c *call) attachmentsByID(ids []any) (object, error) {
	var found []int
	for _, v := range ids {
		id, ok := natural(text(v))
		if !ok {
			return nil, fail(codeNotNumeric, "the attachment id '%s' must be numeric", text(v))
		}
		if c.tx.attachments.get(id) != nil {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	out := object{}
	for _, id := range found {
		a := c.tx.attachments.get(id)
		if _, err := c.bug(int64(a.bug)); err != nil {
			return nil, err
		}
		if a.private && !c.insider(c.user) {
			return nil, fail(codeNotAllowed, "attachment #%d is not open to you", id)
		}
		out[strconv.Itoa(id)] = c.attachmentObject(a)
	}
	return out, nil
}

// attachmentObject is an attachment with the fields that are asked for.
func (c *call) attachmentObject(a *attachment) object {
	o := object{}
	put := func(name string, value func() any) {
		if c.wants(name) {
			o[name] = value()
		}
	}
	is := func(name string, v bool) { put(name, func() any { return digit(v) }) }
	put("id", func() any { return a.id })
	put("bug_id", func() any { return a.bug })
	put("file_name", func() any { return a.fileName })
	put("summary", func() any { return a.summary })
	put("content_type", func() any { return a.contentType })
	put("creator", func() any { return c.email(a.creator) })
	put("creation_time", func() any { return stamp(a.created) })
	put("last_change_time", func() any { return stamp(a.changed) })
	put("data", func() any { return a.encoded() })
	put("size", func() any { return a.size(c.wants("data")) })
	put("flags", func() any { return c.flagObjects(a) })
	is("is_private", a.private)
	is("is_obsolete", a.obsolete)
	is("is_patch", a.patch)
	if c.server.bmo() {
		put("description", func() any { return a.summary })
		put("attacher", func() any { return c.email(a.creator) })
		put("creator_detail", func() any { return c.userDetail(a.creator) })
	}
	return o
}

func digit(v bool) any {
	if v {
		return 1
	}
	return 0
}

func (a *attachment) encoded() any {
	if a.deleted {
		return nil
	}
	return base64.StdEncoding.EncodeToString(a.data)
}

// size is null for deleted data when the data are asked for too, else 0 (wire-facts 5).
func (a *attachment) size(withData bool) any {
	if a.deleted && withData {
		return nil
	}
	return len(a.data)
}

func (c *call) flagObjects(a *attachment) []any {
	list := []any{}
	for _, f := range c.tx.sortedFlags(a.flags) {
		list = append(list, c.flagObject(f))
	}
	return list
}
