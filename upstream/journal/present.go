package journal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// side is one tracker and the caller to ask it as. own says that it is the caller of the write.
type side struct {
	upstream.Tracker
	// comments reads those on an attachment.
	comments func(ctx context.Context, attachment int64) (map[int64]string, error)
	caller   upstream.Caller
	own      bool
	split    jsonblob.SplitOptions
}

// thing is an attachment, a flag type, a flag or a comment as a tracker shows it.
type thing struct {
	ID int64 `json:"id"`
	// FileName, Summary, Created and Flags are those of an attachment.
	FileName string  `json:"file_name"`
	Summary  string  `json:"summary"`
	Created  string  `json:"creation_time"`
	Flags    []thing `json:"flags"`
	// Name is that of a flag or flag type, Description that of a flag type or the text of a comment, Status and Requestee are those of a flag.
	Name        string `json:"name"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Requestee   string `json:"requestee"`
}

// errNoPlace says that a flag type create names no product in which the flag type could be found.
var errNoPlace = errors.New("the flag type is in no product by name, so it cannot be read back")

// present lists what a call that is not idempotent would add to: the attachments of the bug, the flag types of a product, or the
// comments on the attachment or its flags.
func (at side) present(ctx context.Context, call upstream.Call) ([]thing, error) {
	switch {
	case call.CreateAttachment != nil:
		return at.attachments(ctx, mapping.OpBugAttachments, mapping.AttachmentsRequest{
			Bugs: call.CreateAttachment.Bugs, Include: []string{"id", "file_name", "summary", "creation_time"},
		})
	case call.CreateFlagType != nil:
		return at.flagTypes(ctx, call.CreateFlagType)
	case hasComment(call.UpdateAttachments):
		texts, err := at.comments(ctx, call.UpdateAttachments.IDs[0])
		var all []thing
		for id, text := range texts {
			all = append(all, thing{ID: id, Description: text})
		}
		return all, err
	default:
		return at.flags(ctx, call.UpdateAttachments.IDs[0])
	}
}

// hasComment reports whether an update says something. Trackers ignore a blank comment.
func hasComment(update *mapping.AttachmentUpdate) bool {
	return update.Comment != nil && strings.TrimSpace(*update.Comment) != ""
}

func (at side) attachments(ctx context.Context, operation mapping.Operation, request mapping.AttachmentsRequest) ([]thing, error) {
	call := upstream.Call{Operation: operation, Attachments: &request}
	response := call.Make(ctx, at.Tracker, at.caller)
	if response.Err != nil {
		return nil, response.Err
	}
	var shown struct {
		Bugs        map[string][]thing `json:"bugs"`
		Attachments map[string]thing   `json:"attachments"`
	}
	if err := at.read(response.Document, &shown); err != nil {
		return nil, err
	}
	var all []thing
	for _, list := range shown.Bugs {
		all = append(all, list...)
	}
	for _, one := range shown.Attachments {
		all = append(all, one)
	}
	slices.SortFunc(all, byID)
	return all, nil
}

func byID(a, b thing) int { return int(a.ID - b.ID) }

// read reads a reply and closes it.
func (at side) read(document *mapping.Document, into any) error {
	text, err := document.Load(at.split)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return errors.Join(err, document.Close())
}

// flags lists the flags of an attachment, by their ids.
func (at side) flags(ctx context.Context, attachment int64) ([]thing, error) {
	all, err := at.attachments(ctx, mapping.OpAttachment, mapping.AttachmentsRequest{
		Attachments: []string{strconv.FormatInt(attachment, 10)}, Include: []string{"id", "flags"},
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	slices.SortFunc(all[0].Flags, byID)
	return all[0].Flags, nil
}

// flagTypes lists the flag types of the first product in which a new one will be.
func (at side) flagTypes(ctx context.Context, create *mapping.FlagTypeCreate) ([]thing, error) {
	if create.Inclusions == nil || len(*create.Inclusions) == 0 {
		return nil, errNoPlace
	}
	reply, err := at.Do(ctx, at.caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: (*create.Inclusions)[0].Product}})
	if err != nil {
		return nil, err
	}
	var shown struct {
		Bug        []thing `json:"bug"`
		Attachment []thing `json:"attachment"`
	}
	err = at.read(reply.Document, &shown)
	return append(shown.Bug, shown.Attachment...), err
}

// hasContent reports whether an attachment has a content.
func (at side) hasContent(ctx context.Context, id int64, content *jsonblob.Blob) (bool, error) {
	want, err := content.Digest()
	if err != nil {
		return false, err
	}
	request := mapping.AttachmentsRequest{Attachments: []string{strconv.FormatInt(id, 10)}, Include: []string{"id", "data"}}
	reply, err := at.Do(ctx, at.caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &request})
	if err != nil {
		return false, err
	}
	defer reply.Close()
	text, err := reply.Load(at.split)
	if err != nil {
		return false, err
	}
	var shown struct {
		Attachments map[string]struct {
			Data jsontext.Value `json:"data"`
		} `json:"attachments"`
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		return false, err
	}
	for _, one := range shown.Attachments {
		blob, ok := jsonblob.BlobAt(one.Data, reply.Blobs())
		if !ok {
			text, _ := mapping.Text(one.Data)
			if blob, err = jsonblob.BlobFromEncoded(text); err != nil {
				return false, err
			}
		}
		have, err := blob.Digest()
		return have == want, err
	}
	return false, nil
}
