package switchover

import (
	"context"

	"portico/mapping"
	"portico/upstream"
)

// This file has what the switchover knows of each operation: how it finds the tracker for it, and which other operations are about the same objects.

// Do implements upstream.Tracker. The replies of both trackers to an attachment read are merged. The Cache of a reply is that of the
// tracker that responded.
func (s *Switchover) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	if call.FlagTypes != nil {
		return s.flagTypes(ctx, caller, *call.FlagTypes, false)
	}
	do := s.write
	if call.Attachments != nil {
		do = s.attachments
	}
	document, err := do(ctx, caller, call)
	return mapping.Reply{Document: document}, err
}

// decideWrite decides for all objects of a write, which only one tracker may carry out.
func (s *Switchover) decideWrite(ctx context.Context, info *callInfo, call *upstream.Call) (routes []route, err error) {
	switch {
	case call.CreateFlagType != nil:
		// Without inclusions it is for every product (interface.md section 1.3). Exclusions do not occur in practice (tracker-behaviour.md section 2), and
		// do not count.
		places := info.everywhere
		if scopes := call.CreateFlagType.Inclusions; scopes != nil {
			places = info.places(*scopes)
		}
		routes, err = s.decideAll(ctx, info, places)
	case call.UpdateFlagTypes != nil:
		routes, err = s.decideTypesUpdate(ctx, info, call.UpdateFlagTypes)
	case call.CreateAttachment != nil:
		routes, err = s.decideAttach(ctx, info, call)
	case call.UpdateAttachments != nil:
		routes, err = s.decideAll(ctx, info, objectsOf(call.UpdateAttachments.IDs, attachmentNumbered))
	default:
		err = refuse("It cannot be told to which of two trackers %q belongs, so nothing was changed.", call.Operation)
	}
	if err != nil {
		return nil, err
	}
	return routes, s.undivided(routes)
}

// relation is a write, and another call that may be about the same object: a read that shows what was written, or
// another write.
type relation struct {
	write, other   mapping.Operation
	written, shown object
	// part, when not empty, says that a read shows more than what was written, and may go elsewhere
	// for that reason.
	part string
}

// relations lists those of a sample.
func relations(s *sample) []relation {
	types := object{kind: typesObject, product: s.place.Product, component: s.place.Component}
	product := types
	product.component = ""
	bug := object{kind: bugObject, id: s.place.Bug}
	attachment := object{kind: attachmentObject, id: s.attachment}
	// A new attachment gets an id beyond all ranges that end.
	added := object{kind: attachmentObject, id: 1 << 62}
	const wholeProduct = "the flag types of a whole product"
	const makeType, changeType = mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes
	const attach, change = mapping.OpCreateAttachment, mapping.OpUpdateAttachments
	return []relation{
		{makeType, mapping.OpFlagTypes, types, types, ""},
		{changeType, mapping.OpFlagTypes, types, types, ""},
		{attach, mapping.OpBugAttachments, bug, bug, ""},
		{attach, mapping.OpAttachment, bug, added, ""},
		{change, mapping.OpAttachment, attachment, attachment, ""},
		{makeType, mapping.OpFlagTypes, types, product, wholeProduct},
		{changeType, mapping.OpFlagTypes, types, product, wholeProduct},
		{change, mapping.OpBugAttachments, attachment, bug, "the list of a bug's attachments"},
		{makeType, changeType, types, types, ""},
		{changeType, makeType, types, types, ""},
		{attach, change, bug, added, ""},
		{change, attach, added, bug, ""},
	}
}

// FlagTypeWriters names the rules that send flag type writes to the new tracker, or to the old one. Rules after one that matches all flag
// type writes do not count.
func FlagTypeWriters(rules []Rule, toNew bool) (names []string) {
	writes := []mapping.Operation{mapping.OpCreateFlagType, mapping.OpUpdateFlagTypes}
	for _, rule := range rules {
		if len(common(rule.Operations, writes, equal, "")) > 0 && len(rule.Bugs)+len(rule.Attachments) == 0 && rule.Writes.New() == toNew {
			names = append(names, rule.Name)
		}
		if covers(rule, Rule{Operations: writes}) {
			break
		}
	}
	return names
}
