package idmap

import (
	"portico/mapping"
	"portico/upstream"
)

// call visits a call. Its request is the caller's to change, but not what it points to.
func (t *translation) call(call upstream.Call) {
	if r := call.CreateFlagType; r != nil {
		t.fields(&r.FlagTypeFields)
	}
	if r := call.UpdateFlagTypes; r != nil {
		r.IDs, r.Names = each(t.id, FlagType, r.IDs), each(t.name, FlagType, r.Names)
		t.fields(&r.FlagTypeFields)
	}
	if r := call.Attachments; r != nil {
		r.Bugs, r.Attachments = each(t.text, Bug, r.Bugs), each(t.text, Attachment, r.Attachments)
	}
	if r := call.CreateAttachment; r != nil {
		r.Bugs, r.Flags = each(t.text, Bug, r.Bugs), each(t.flag, Flag, r.Flags)
		t.text(Bug, &r.PathBug)
		t.extra(r.Extra)
	}
	if r := call.UpdateAttachments; r != nil {
		r.IDs, r.Flags = each(t.id, Attachment, r.IDs), each(t.flag, Flag, r.Flags)
		t.extra(r.Extra)
	}
}

// shape says where a value has ids and names.
type shape struct {
	// id is the kind of an id, name that of a name.
	id, name Kind
	// keys is the kind of the ids that are the names of all members.
	keys Kind
	// members are some members of an object, each all others, or the items of an array.
	members members
	each    *shape
}

type members map[string]*shape

// shapes are those of the replies of each operation (tracker-behaviour.md sections 2 to 8 and 14).
var shapes = map[mapping.Operation]*shape{
	mapping.OpFlagTypes:         {each: &shape{each: flagTypeShape}},
	mapping.OpCreateFlagType:    {members: members{"id": {id: FlagType}, "flag_id": {id: FlagType}}},
	mapping.OpUpdateFlagTypes:   {members: members{"flagtypes": {each: flagTypeShape}}},
	mapping.OpBugAttachments:    attachmentsShape,
	mapping.OpAttachment:        attachmentsShape,
	mapping.OpCreateAttachment:  {members: members{"ids": {each: &shape{id: Attachment}}, "attachments": attachmentsShape.members["attachments"]}},
	mapping.OpUpdateAttachments: {members: members{"attachments": {each: attachmentShape}}},
}

// made are the kinds of the objects that an operation makes, and of the ids in its reply that are new.
var made = map[mapping.Operation][]Kind{mapping.OpCreateFlagType: {FlagType}, mapping.OpCreateAttachment: {Attachment, Flag}}

var attachmentsShape = &shape{members: members{
	"bugs":        {keys: Bug, each: &shape{each: attachmentShape}},
	"attachments": {keys: Attachment, each: attachmentShape},
}}

// attachmentShape is that of an attachment and of the changes of one.
var attachmentShape = &shape{members: members{
	"id": {id: Attachment}, "bug_id": {id: Bug}, "creator": {name: user}, "attacher": {name: user},
	"creator_detail": {members: members{"name": {name: user}, "email": {name: user}}},
	"flags": {each: &shape{members: members{
		"id": {id: Flag}, "type_id": {id: FlagType}, "name": {name: FlagType}, "setter": {name: user}, "requestee": {name: user},
	}}},
	"changes": {members: members{"flagtypes.name": {each: &shape{name: flagList}}}},
}}

// flagTypeShape is that of a flag type and of the changes of one.
var flagTypeShape = &shape{members: members{
	"id": {id: FlagType}, "name": {name: FlagType}, "inclusions": {each: &shape{name: component}}, "exclusions": {each: &shape{name: component}},
	"changes": {members: members{
		"name": {each: &shape{name: FlagType}}, "grant_group_id": {each: &shape{id: Group}}, "request_group_id": {each: &shape{id: Group}},
	}},
}}
