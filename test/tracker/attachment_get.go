package tracker

import (
	"encoding/base64"
	"slices"
	"strconv"
)

var (
	opAttachmentList = operation{name: "attachment.list", rate: true, do: (*call).attachments}
	opAttachmentGet  = operation{name: "attachment.get", rate: true, do: (*call).attachments}
)

// attachments reads by bug and by attachment id; both may be asked for at once (tracker-behaviour.md section 5).
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
	bugs, err := c.bugsOf(bugIDs)
	if err != nil {
		return nil, err
	}
	byID, err := c.attachmentsByID(ids)
	return object{"bugs": c.attachmentsByBug(bugs), "attachments": byID}, err
}

// attachmentsByBug leaves out private ones silently, unless the caller is an insider or their submitter.
func (c *call) attachmentsByBug(bugs []*bug) object {
	out := object{}
	insider := c.insider(c.user)
	for _, b := range bugs {
		list := []any{}
		for _, id := range b.attachments {
			a := c.tx.attachments.get(id)
			if !a.private || insider || c.user != nil && c.user.id == a.creator {
				list = append(list, c.attachmentObject(a))
			}
		}
		out[strconv.Itoa(b.id)] = list
	}
	return out
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
	o := c.filter("", object{
		"id": a.id, "bug_id": a.bug, "file_name": a.fileName, "summary": a.summary, "content_type": a.contentType,
		"creator": c.email(a.creator), "creation_time": stamp(a.created), "last_change_time": stamp(a.changed), "flags": c.flagObjects(a.flags),
		"size": a.size(c.wants("data") && !c.server.mojolicious()), "data": nil,
		"is_private": digit(a.private), "is_obsolete": digit(a.obsolete), "is_patch": digit(a.patch),
		"description": a.summary, "attacher": c.email(a.creator),
	})
	if c.wants("data") && !a.deleted {
		o["data"] = base64.StdEncoding.EncodeToString(a.data)
	}
	if !c.server.mojolicious() {
		delete(o, "description")
		delete(o, "attacher")
	} else if c.wants("creator") {
		o["creator_detail"] = c.userDetail(a.creator)
	}
	return o
}

func digit(v bool) int {
	if v {
		return 1
	}
	return 0
}

// size may be null for deleted data: 5.x does so when the data are asked for too (tracker-behaviour.md section 5).
func (a *attachment) size(orNull bool) any {
	if a.deleted && orNull {
		return nil
	}
	return len(a.data)
}

func (c *call) flagObjects(flags []flag) []any { return listOf(c.tx.sortedFlags(flags), c.flagObject) }
