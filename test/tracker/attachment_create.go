package tracker

import "slices"

var opAttachmentCreate = operation{name: "attachment.create", success: 201, write: true, do: (*call).attachmentCreate}

// attachmentCreate adds the same attachment to each of the bugs, to all or to none (tracker-behaviour.md section 6).
func (c *call) attachmentCreate() (any, error) {
	if _, ok := c.params["ids"]; !ok {
		return nil, fail(codeParamRequired, "adding an attachment needs the parameter 'ids'")
	}
	if c.params["data"] == nil {
		return nil, fail(codeParamRequired, "adding an attachment needs the parameter 'data'")
	}
	bugs, err := c.bugs()
	if err != nil {
		return nil, err
	}
	created := []any{}
	for _, b := range bugs {
		a, err := c.attach(b)
		if err != nil {
			return nil, err
		}
		created = append(created, a.id)
		c.written = append(c.written, a.id)
	}
	return c.createdReply(created), nil
}

// createdReply names the new attachments; BMO gives them whole (tracker-behaviour.md section 9).
func (c *call) createdReply(ids []any) object {
	if !c.server.mojolicious() {
		return object{"ids": ids}
	}
	out := object{}
	for _, id := range ids {
		a := c.tx.attachments.get(id.(int))
		out[text(int64(a.id))] = c.attachmentObject(a)
	}
	return object{"attachments": out}
}

// attach makes one attachment. Its id is taken before its flags and its comment are checked, so a failure there leaves a gap.
func (c *call) attach(b *bug) (*attachment, error) {
	a, err := c.newAttachment()
	if err != nil {
		return nil, err
	}
	a.id, a.bug, a.creator, a.created, a.changed = c.tx.attachments.next(), b.id, c.user.id, c.tx.now, c.tx.now
	c.tx.attachments.put(a.id, a)
	edited := c.tx.bugs.edit(b.id)
	edited.attachments = append(slices.Clone(edited.attachments), a.id)
	edited.changed = c.tx.now
	if _, _, err := c.newSheet(b, a).edit(c.params["flags"]); err != nil {
		return nil, err
	}
	said := ""
	if v := c.params["comment"]; truth(v) {
		said = text(v)
	}
	return a, c.addComment(b, comment{text: said, kind: attachmentCreated, attachment: a.id, private: a.private})
}

// newAttachment checks the fields in the order of tracker-behaviour.md section 6: data, summary, file_name, is_private, content_type.
func (c *call) newAttachment() (*attachment, error) {
	a := &attachment{patch: truth(c.params["is_patch"])}
	var err error
	if a.data, err = c.checkData(c.params["data"]); err != nil {
		return nil, err
	}
	if a.summary, err = checkSummary(c.params["summary"]); err != nil {
		return nil, err
	}
	if a.fileName, err = checkFileName(c.params["file_name"], codeFileName); err != nil {
		return nil, err
	}
	if a.private, err = c.checkPrivate(c.params["is_private"], false); err != nil {
		return nil, err
	}
	if a.contentType, err = checkContentType(c.params["content_type"], a.patch, c.server.mojolicious()); err != nil {
		return nil, err
	}
	a.summary, a.contentType = cut(a.summary, columnLength), cut(a.contentType, columnLength)
	return a, nil
}
