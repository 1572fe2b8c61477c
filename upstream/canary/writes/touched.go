package writes

import (
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
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
