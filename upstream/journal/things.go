package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// side is one tracker and the caller to ask it as. own says that it is the caller of the write.
type side struct {
	tracker upstream.Tracker
	// comments reads those on an attachment.
	comments func(ctx context.Context, attachment int64) ([]thing, error)
	caller   upstream.Caller
	own      bool
	split    jsonblob.SplitOptions
}

// thing is an attachment, a flag type, a flag or a comment as a tracker shows it.
type thing struct {
	ID int64 `json:"id"`
	// FileName, Summary and Flags are those of an attachment.
	FileName string  `json:"file_name"`
	Summary  string  `json:"summary"`
	Flags    []thing `json:"flags"`
	// Created is when an attachment or a comment was made, and Set when a flag was.
	Created string `json:"creation_time"`
	Set     string `json:"creation_date"`
	// Name is that of a flag or flag type, Description that of a flag type or the text of a comment, Status and Requestee are those of a flag.
	Name        string `json:"name"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Requestee   string `json:"requestee"`
	// Data is the content of an attachment, and digest that of the content.
	Data   jsontext.Value `json:"data"`
	digest [sha256.Size]byte
}

// madeAt returns when a thing was made, as its tracker writes it.
func (t thing) madeAt() string { return cmp.Or(t.Created, t.Set) }

// before reports whether a thing was made before a time. Clocks may differ by a minute.
func (t thing) before(at time.Time) bool {
	made, err := time.Parse(time.RFC3339, t.madeAt())
	return err == nil && made.Before(at.Add(-time.Minute))
}

// from lists the things that were not made before a time.
func from(list []thing, at time.Time) []thing {
	return slices.DeleteFunc(slices.Clone(list), func(one thing) bool { return one.before(at) })
}

func hasID(list []thing, id int64) bool {
	return slices.ContainsFunc(list, func(one thing) bool { return one.ID == id })
}

// without lists the things of a list that another one does not have.
func without(list, other []thing) []thing {
	return slices.DeleteFunc(slices.Clone(list), func(one thing) bool { return hasID(other, one.ID) })
}

// errNoPlace says that a flag type create names no product in which the flag type could be found.
var errNoPlace = errors.New("the flag type is in no product by name, so it cannot be read back")

func (at side) attachments(ctx context.Context, operation mapping.Operation, request mapping.AttachmentsRequest) ([]thing, error) {
	var shown struct {
		Bugs        map[string][]thing `json:"bugs"`
		Attachments map[string]thing   `json:"attachments"`
	}
	reply, err := at.read(ctx, upstream.Call{Operation: operation, Attachments: &request}, &shown)
	if err != nil {
		return nil, err
	}
	defer reply.Close()
	var all []thing
	for _, list := range shown.Bugs {
		all = append(all, list...)
	}
	for _, one := range shown.Attachments {
		if one.Data != nil {
			blob, ok := jsonblob.BlobAt(one.Data, reply.Blobs())
			if !ok {
				text, _ := mapping.Text(one.Data)
				blob, err = jsonblob.BlobFromEncoded(text)
			}
			if err == nil {
				one.digest, err = blob.Digest()
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, byID)
	return all, nil
}

func byID(a, b thing) int { return int(a.ID - b.ID) }

// read makes a call and reads its reply. The caller closes it.
func (at side) read(ctx context.Context, call upstream.Call, into any) (mapping.Reply, error) {
	reply, err := at.tracker.Do(ctx, at.caller, call)
	if err != nil {
		return reply, err
	}
	text, err := reply.Load(at.split)
	if err == nil {
		err = json.Unmarshal(text, into, jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		err = errors.Join(err, reply.Close())
	}
	return reply, err
}

// flags lists the flags of an attachment, by their ids.
func (at side) flags(ctx context.Context, attachment int64) ([]thing, error) {
	shown, err := at.attachment(ctx, attachment, "flags")
	slices.SortFunc(shown.Flags, byID)
	return shown.Flags, err
}

// attachment reads a field of an attachment, and nothing where the attachment is not shown.
func (at side) attachment(ctx context.Context, id int64, field string) (thing, error) {
	all, err := at.attachments(ctx, mapping.OpAttachment, mapping.AttachmentsRequest{
		Attachments: []string{strconv.FormatInt(id, 10)}, Include: []string{"id", field},
	})
	return append(all, thing{})[0], err
}

// flagTypes lists the flag types of the first product in which a new one will be.
func (at side) flagTypes(ctx context.Context, inclusions *mapping.Scopes) ([]thing, error) {
	if inclusions == nil || len(*inclusions) == 0 {
		return nil, errNoPlace
	}
	var shown struct {
		Bug        []thing `json:"bug"`
		Attachment []thing `json:"attachment"`
	}
	request := mapping.FlagTypesRequest{Product: (*inclusions)[0].Product}
	reply, err := at.read(ctx, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request}, &shown)
	if err != nil {
		return nil, err
	}
	defer reply.Close()
	return append(shown.Bug, shown.Attachment...), nil
}

// hasContent reports whether an attachment has a content.
func (at side) hasContent(ctx context.Context, id int64, content *jsonblob.Blob) (bool, error) {
	want, err := content.Digest()
	if err != nil {
		return false, err
	}
	shown, err := at.attachment(ctx, id, "data")
	return shown.digest == want, err
}
