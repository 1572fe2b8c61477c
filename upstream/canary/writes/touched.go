package writes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

// maxRead is the maximum number of objects that are read after one write.
const maxRead = 20

// Touched gives the read that shows what a write has changed, and false where request
// and reply do not tell.
func Touched(write upstream.Call, reply jsontext.Value) (upstream.Call, bool) {
	switch {
	case write.UpdateAttachments != nil:
		return readAttachments(write.UpdateAttachments.IDs, "data")
	case write.CreateAttachment != nil:
		return readAttachments(createdIDs(reply))
	case write.CreateFlagType != nil:
		return readFlagTypes(write.CreateFlagType.Inclusions)
	case write.UpdateFlagTypes != nil:
		return readFlagTypes(write.UpdateFlagTypes.Inclusions)
	}
	return upstream.Call{}, false
}

// Keys of writes that name no object: anyFlagType stands for each write to a flag type,
// allFlagTypes for writes that may have changed all of them, and newAttachment for each
// create of an attachment, whose id is not known.
const (
	anyFlagType   = "any flag type"
	allFlagTypes  = "all flag types"
	newAttachment = "new attachment"
)

// keysOfWrite names the objects that a write is about.
func keysOfWrite(write upstream.Call) []string {
	switch {
	case write.CreateAttachment != nil:
		return []string{newAttachment}
	case write.UpdateAttachments != nil:
		return keysOf("attachment", write.UpdateAttachments.IDs)
	case write.CreateFlagType != nil && write.CreateFlagType.Name != nil:
		return append(keysOf("flag type", []string{*write.CreateFlagType.Name}), anyFlagType)
	case write.UpdateFlagTypes != nil:
		update := write.UpdateFlagTypes
		return append(slices.Concat(keysOf("flag type", update.IDs), keysOf("flag type", update.Names)), anyFlagType)
	}
	return []string{anyFlagType, allFlagTypes}
}

// keysOfDifference names the object that differs, and where it is no single one, or one
// that only one side has, what the call asked for.
func keysOfDifference(call upstream.Call, d compare.Difference) (keys []string) {
	kind := "attachment"
	if call.FlagTypes != nil {
		kind, keys = "flag type", []string{allFlagTypes}
	}
	for _, text := range []jsontext.Value{d.WantIn, d.HaveIn, d.Want, d.Have} {
		object, _ := mapping.ParseMembers(text) // what is not an object has no members
		for _, name := range []string{"id", "name"} {
			if value, ok := mapping.Text(object.Get(name)); ok {
				keys = append(keys, keysOf(kind, []string{value})...)
			}
		}
	}
	switch {
	case d.Object != "":
	case call.FlagTypes != nil && d.Want.Kind() != '{' && d.Have.Kind() != '{':
		keys = append(keys, anyFlagType)
	case call.Attachments != nil:
		keys = slices.Concat(keys, keysOf("attachment", call.Attachments.Attachments), []string{newAttachment})
	}
	return keys
}

func keysOf[T any](kind string, names []T) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = strings.ToLower(fmt.Sprint(kind, " ", name))
	}
	return keys
}

// Locator finds where bugs and attachments belong. Both trackers' clients are Locators.
type Locator interface {
	// Bug returns the place of a bug, by id or alias.
	Bug(ctx context.Context, caller upstream.Caller, ref string) (mapping.Place, error)
	// AttachmentBug returns the bug of an attachment.
	AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (int64, error)
}

// Product returns the product that a call is about, the first one of several. It asks locate for that of a bug, and is empty where it
// is not known.
func Product(ctx context.Context, locate Locator, caller upstream.Caller, call upstream.Call) string {
	var asked mapping.AttachmentsRequest
	switch {
	case call.FlagTypes != nil:
		return call.FlagTypes.Product
	case call.Attachments != nil:
		asked = *call.Attachments
	case call.CreateAttachment != nil:
		asked.Bugs = call.CreateAttachment.Named()
	default:
		switch read, _ := Touched(call, nil); {
		case read.FlagTypes != nil:
			return read.FlagTypes.Product
		case read.Attachments != nil:
			asked = *read.Attachments
		}
	}
	if locate == nil {
		return ""
	}
	if len(asked.Bugs) == 0 && len(asked.Attachments) > 0 {
		id, _ := strconv.ParseInt(asked.Attachments[0], 10, 64)
		if bug, err := locate.AttachmentBug(ctx, caller, id); err == nil {
			asked.Bugs = []string{strconv.FormatInt(bug, 10)}
		}
	}
	if len(asked.Bugs) == 0 {
		return ""
	}
	place, _ := locate.Bug(ctx, caller, asked.Bugs[0]) // an unknown place has no product
	return place.Product
}

func readAttachments(ids []int64, without ...string) (upstream.Call, bool) {
	request := mapping.AttachmentsRequest{Exclude: without}
	for _, id := range ids[:min(len(ids), maxRead)] {
		request.Attachments = append(request.Attachments, strconv.FormatInt(id, 10))
	}
	return upstream.Call{Operation: mapping.OpAttachment, Attachments: &request}, len(ids) > 0
}

// readFlagTypes reads a product in which the flag type is visible.
func readFlagTypes(inclusions *mapping.Scopes) (upstream.Call, bool) {
	if inclusions != nil {
		for _, scope := range *inclusions {
			if scope.Product != "" {
				return upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: scope.Product}}, true
			}
		}
	}
	return upstream.Call{}, false
}

// createdIDs reads the response to an attachment create.
func createdIDs(reply jsontext.Value) (ids []int64) {
	var created struct{ IDs []json.RawMessage }
	_ = json.Unmarshal(reply, &created) // without ids there is nothing to read
	for _, text := range created.IDs {
		if id, ok := mapping.Int(jsontext.Value(text)); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
