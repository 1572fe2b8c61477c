package tracker

import "strconv"

var (
	opComments      = operation{name: "bug.comments", rate: true, do: (*call).comments}
	opCommentCreate = operation{name: "comment.create", success: 201, write: true, do: (*call).commentCreate}
)

// comments reads the comments of bugs; private ones are for insiders.
func (c *call) comments() (any, error) {
	bugs, err := c.bugs()
	if err != nil {
		return nil, err
	}
	result := object{}
	for _, b := range bugs {
		list := []any{}
		for i, cm := range b.comments {
			if !cm.private || c.insider(c.user) {
				list = append(list, c.commentObject(b, i, cm))
			}
		}
		result[strconv.Itoa(b.id)] = object{"comments": list}
	}
	return object{"bugs": result, "comments": object{}}, nil
}

func (c *call) commentObject(b *bug, count int, cm comment) object {
	o := object{
		"id": cm.id, "bug_id": b.id, "count": count, "creator": c.email(cm.author), "time": stamp(cm.at),
		"creation_time": stamp(cm.at), "is_private": cm.private, "text": c.tx.commentText(cm), "tags": []any{}, "attachment_id": nil,
	}
	if cm.kind != plainComment {
		o["attachment_id"] = cm.attachment
	}
	return o
}

func (c *call) commentCreate() (any, error) {
	b, err := c.bug(c.params["id"])
	if err != nil {
		return nil, err
	}
	if !truth(trim(text(c.params["comment"]))) {
		return nil, fail(codeParamRequired, "adding a comment needs the parameter 'comment'")
	}
	if err := c.addComment(b, comment{text: text(c.params["comment"]), private: truth(c.params["is_private"])}); err != nil {
		return nil, err
	}
	c.written = []int{c.tx.data.lastComment}
	return object{"id": c.tx.data.lastComment}, nil
}
