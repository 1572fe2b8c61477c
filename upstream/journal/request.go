package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/state"
)

// typesLane is the lane of all flag types, as each may be in any product.
const typesLane = "flag types"

func attachmentLane(id int64) string { return "attachment " + strconv.FormatInt(id, 10) }

// flagTypeLane names a flag type that a create has made. Its writes are in typesLane.
func flagTypeLane(id int64) string { return "flag type " + strconv.FormatInt(id, 10) }

// bugLane is the lane of a bug's new attachments.
func bugLane(bug string) string { return "bug " + strings.ToLower(strings.TrimSpace(bug)) }

// objectID is the id in the name of a lane, 0 for none.
func objectID(lane string) int64 {
	_, text, _ := strings.Cut(lane, " ")
	id, _ := strconv.ParseInt(text, 10, 64)
	return id
}

// request is a write of one object in the form that is kept, with the ids that clients know.
type request struct {
	// Members are those of the body without its data.
	Members jsontext.Value `json:"members"`
	// Content is the base64 text of a small content.
	Content string `json:"content,omitempty"`
}

// laneCall is a call about the object of one lane.
type laneCall struct {
	lane string
	call upstream.Call
}

// split makes one call for each object of a write.
func split(intent Intent) (all []laneCall) {
	call := intent.Call
	switch {
	case call.CreateAttachment != nil:
		for _, bug := range intent.Bugs {
			one := *call.CreateAttachment
			one.Bugs, one.PathBug = []string{bug}, ""
			all = append(all, laneCall{bugLane(bug), upstream.Call{Operation: call.Operation, CreateAttachment: &one}})
		}
	case call.UpdateAttachments != nil:
		for _, id := range call.UpdateAttachments.IDs {
			one := *call.UpdateAttachments
			one.IDs = []int64{id}
			all = append(all, laneCall{attachmentLane(id), upstream.Call{Operation: call.Operation, UpdateAttachments: &one}})
		}
	default:
		return []laneCall{{typesLane, call}}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(one laneCall) bool {
		before := seen[one.lane]
		seen[one.lane] = true
		return before
	})
}

// members renders the body of a write, in the form that no dialect has shortened.
func members(call upstream.Call) (mapping.Members, error) {
	switch {
	case call.CreateFlagType != nil:
		return call.CreateFlagType.Members(mapping.Dialect{})
	case call.UpdateFlagTypes != nil:
		return call.UpdateFlagTypes.Members(mapping.Dialect{})
	case call.CreateAttachment != nil:
		return call.CreateAttachment.Members(), nil
	case call.UpdateAttachments != nil:
		return call.UpdateAttachments.Members(), nil
	}
	return nil, errors.New("a call that is not a write")
}

// seal puts a call into an entry, which has its lane. A large content goes to the spool.
func (s *Settings) seal(e *state.JournalEntry, call upstream.Call) error {
	body, err := members(call)
	if err != nil {
		return err
	}
	kept := request{Members: body.AppendJSON(nil)}
	if create := call.CreateAttachment; create != nil {
		if create.Data.EncodedLen() > s.MaxInline {
			e.Spool, err = s.spool().write(create.Data.Reader())
		} else {
			var text []byte
			text, err = io.ReadAll(create.Data.Reader())
			kept.Content = string(text)
		}
		if err != nil {
			return err
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return errors.Join(err, s.spool().remove(e.Spool))
	}
	e.Request = s.Keys.seal(text, e.Lane)
	return nil
}

// open reads the call of an entry. The caller closes the content of a create.
func (s *Settings) open(e *state.JournalEntry) (call upstream.Call, err error) {
	text, err := s.Keys.open(e.Request, e.Lane)
	if err != nil {
		return call, fmt.Errorf("decrypt the request: %w", err)
	}
	var kept request
	if err := json.Unmarshal(text, &kept); err != nil {
		return call, fmt.Errorf("read the request: %w", err)
	}
	body, err := mapping.ParseMembers(kept.Members)
	if err != nil {
		return call, fmt.Errorf("read the request: %w", err)
	}
	call.Operation = e.Operation
	switch e.Operation {
	case mapping.OpCreateFlagType:
		call.CreateFlagType, err = decoded(mapping.DecodeFlagTypeCreate(body))
	case mapping.OpUpdateFlagTypes:
		call.UpdateFlagTypes, err = decoded(mapping.DecodeFlagTypeUpdate(firstOf(body, "ids", "names"), body))
	case mapping.OpUpdateAttachments:
		call.UpdateAttachments, err = decoded(mapping.DecodeAttachmentUpdate(firstOf(body, "ids"), body))
	case mapping.OpCreateAttachment:
		call.CreateAttachment, err = s.openCreate(e, kept, body)
	default:
		err = fmt.Errorf("%q is not a write", e.Operation)
	}
	return call, err
}

// openCreate reads an attachment create with its content.
func (s *Settings) openCreate(e *state.JournalEntry, kept request, body mapping.Members) (*mapping.AttachmentCreate, error) {
	var content io.Reader = strings.NewReader(kept.Content)
	if e.Spool != "" {
		file, err := s.spool().open(e.Spool)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		content = file
	}
	blob, err := jsonblob.BlobFromReader(content, s.Split)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	body.Set("data", jsonblob.AppendPlaceholder(nil, 0))
	create, err := decoded(mapping.DecodeAttachmentCreate(firstOf(body, "ids"), body, []*jsonblob.Blob{blob}))
	if err != nil {
		return nil, errors.Join(err, blob.Close())
	}
	return create, nil
}

func decoded[T any](request T, err error) (*T, error) {
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return &request, nil
}

// firstOf is the first value in the lists of a body.
func firstOf(body mapping.Members, names ...string) string {
	for _, name := range names {
		var list []jsontext.Value
		if json.Unmarshal(body.Get(name), &list) == nil && len(list) > 0 {
			text, _ := mapping.Text(list[0])
			return text
		}
	}
	return ""
}
