package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// operation is a write of one object, and all that the journal must know of it. A new write gets a function below that fills all that applies,
// and a case in objectsOf and in decode. Without the cases it is refused before it is sent.
type operation struct {
	call upstream.Call
	// lane names the object where objectsOf has made it. kind is the kind of the id, as in Pairs, that a create gives to its object.
	lane, kind string
	// members renders the request, in the form that no dialect has shortened.
	members func(mapping.Dialect) (mapping.Members, error)
	// comment, flags and content are parts of the request. Nil means that it never has one.
	comment **string
	flags   *[]mapping.FlagChange
	content *jsonblob.Blob
	// byIDs, where it is set, is the same write of the objects that the response names, since other ones may have their names later.
	byIDs func(ids []int64) operation
	// repeatable says that making the call twice does the same as making it once. Another call needs the next two.
	repeatable bool
	// present lists what the call adds to.
	present func(ctx context.Context, at side) ([]thing, error)
	// matches lists those of new things that the call would have made. It may change the list.
	matches func(ctx context.Context, at side, added []thing) ([]thing, error)
}

// objectsOf makes an operation for each object of a write.
func objectsOf(intent Intent) (all []operation, err error) {
	add := func(lane string, of operation) {
		of.lane = lane
		all = append(all, of)
	}
	// Each flag type may be in any product, so all of them are in one lane.
	const types = "flag types"
	switch call := intent.Call; {
	case call.CreateFlagType != nil:
		add(types, flagTypeCreate(call.CreateFlagType))
	case call.UpdateFlagTypes != nil:
		add(types, flagTypeUpdate(call.UpdateFlagTypes))
	case call.CreateAttachment != nil:
		for _, bug := range intent.Bugs {
			one := *call.CreateAttachment
			one.Bugs, one.PathBug = []string{bug}, ""
			add("bug "+strings.ToLower(strings.TrimSpace(bug)), attachmentCreate(&one))
		}
	case call.UpdateAttachments != nil:
		for _, id := range slices.Compact(slices.Sorted(slices.Values(call.UpdateAttachments.IDs))) {
			one := *call.UpdateAttachments
			one.IDs = slices.DeleteFunc(slices.Clone(one.IDs), func(other int64) bool { return other != id }) // named twice, it gets a comment twice
			add(laneOf("attachment", id), attachmentUpdate(&one))
		}
	}
	if len(all) == 0 {
		err = fmt.Errorf("the journal cannot record %q", intent.Call.Operation)
	}
	return all, err
}

// decode reads an operation from the members of its request, with its content.
func decode(name mapping.Operation, body mapping.Members, content []*jsonblob.Blob) (operation, error) {
	switch name {
	case mapping.OpCreateFlagType:
		create, err := mapping.DecodeFlagTypeCreate(body)
		return flagTypeCreate(&create), err
	case mapping.OpUpdateFlagTypes:
		update, err := mapping.DecodeFlagTypeUpdate(firstOf(body, "ids", "names"), body)
		return flagTypeUpdate(&update), err
	case mapping.OpCreateAttachment:
		create, err := mapping.DecodeAttachmentCreate(firstOf(body, "ids"), body, content)
		return attachmentCreate(&create), err
	case mapping.OpUpdateAttachments:
		update, err := mapping.DecodeAttachmentUpdate(firstOf(body, "ids"), body)
		return attachmentUpdate(&update), err
	}
	return operation{}, fmt.Errorf("the journal cannot copy %q", name)
}

// flagTypeCreate is found among the flag types of a product, by its name and description.
func flagTypeCreate(create *mapping.FlagTypeCreate) operation {
	return operation{
		call: upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: create},
		kind: "flag_type", members: create.Members,
		present: func(ctx context.Context, at side) ([]thing, error) { return at.flagTypes(ctx, create.Inclusions) },
		matches: func(_ context.Context, _ side, added []thing) ([]thing, error) {
			return slices.DeleteFunc(added, func(one thing) bool {
				return trimmed(create.Name) != trimmed(&one.Name) || trimmed(create.Description) != trimmed(&one.Description)
			}), nil
		},
	}
}

func flagTypeUpdate(update *mapping.FlagTypeUpdate) operation {
	return operation{
		call:    upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: update},
		members: update.Members, repeatable: true,
		byIDs: func(ids []int64) operation {
			one := *update
			one.IDs, one.Names = ids, nil
			return flagTypeUpdate(&one)
		},
	}
}

// attachmentCreate is found among the attachments of its bug, by name, summary and content.
func attachmentCreate(create *mapping.AttachmentCreate) operation {
	return operation{
		call: upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: create},
		kind: "attachment", members: func(mapping.Dialect) (mapping.Members, error) { return create.Members(), nil },
		comment: &create.Comment, flags: &create.Flags, content: create.Data,
		present: func(ctx context.Context, at side) ([]thing, error) {
			return at.attachments(ctx, mapping.OpBugAttachments, mapping.AttachmentsRequest{
				Bugs: create.Bugs, Include: []string{"id", "file_name", "summary", "creation_time"},
			})
		},
		matches: func(ctx context.Context, at side, added []thing) (fit []thing, err error) {
			name := trimmed(create.FileName)
			name = name[strings.LastIndexAny(name, `/\`)+1:] // trackers cut the path
			for _, one := range added {
				same := shownAs(name, one.FileName, strings.HasSuffix) && shownAs(trimmed(create.Summary), one.Summary, strings.HasPrefix)
				if same {
					same, err = at.hasContent(ctx, one.ID, create.Data)
				}
				if err != nil {
					return nil, err
				}
				if same {
					fit = append(fit, one)
				}
			}
			return fit, nil
		},
	}
}

// attachmentUpdate can be made twice unless it has a comment, which is found by its text, or sets flags anew, all of which must be there.
func attachmentUpdate(update *mapping.AttachmentUpdate) operation {
	of := operation{
		call:    upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: update},
		members: func(mapping.Dialect) (mapping.Members, error) { return update.Members(), nil },
		comment: &update.Comment, flags: &update.Flags,
		present: func(ctx context.Context, at side) ([]thing, error) { return at.flags(ctx, update.IDs[0]) },
		matches: func(_ context.Context, _ side, added []thing) ([]thing, error) {
			return matchNew(update.Flags, added), nil
		},
	}
	if isBlank(update.Comment) {
		of.repeatable = !slices.ContainsFunc(update.Flags, isNew)
		return of
	}
	lines := strings.NewReplacer("\r\n", "\n", "\r", "\n") // as trackers do
	text := lines.Replace(trimmed(update.Comment))
	of.present = func(ctx context.Context, at side) ([]thing, error) { return at.comments(ctx, update.IDs[0]) }
	of.matches = func(_ context.Context, _ side, added []thing) ([]thing, error) {
		return slices.DeleteFunc(added, func(one thing) bool {
			return !strings.Contains(lines.Replace(one.Description), text) // a tracker puts before it what it is about, and a copy the name of its caller after it
		}), nil
	}
	return of
}

// isBlank reports whether there is no comment. Trackers ignore a blank one.
func isBlank(comment *string) bool { return trimmed(comment) == "" }

func isNew(flag mapping.FlagChange) bool { return flag.New != nil && *flag.New }

// matchNew returns the first flag of those that are set anew, if each of them has been added.
func matchNew(sent []mapping.FlagChange, added []thing) (first []thing) {
	for _, flag := range sent {
		if !isNew(flag) {
			continue
		}
		i := slices.IndexFunc(added, func(one thing) bool {
			return (flag.Name == nil || *flag.Name == one.Name) && flag.Status == one.Status && (flag.Requestee == nil || *flag.Requestee == one.Requestee)
		})
		if i < 0 {
			return nil
		}
		first = []thing{added[i]}
		added = slices.Delete(added, i, i+1)
	}
	return first
}

// shownAs reports whether trackers may show a text as another one, or as such a part of it: they keep 255 characters or bytes.
func shownAs(text, shown string, isPart func(text, part string) bool) bool {
	text, shown = trimmed(&text), trimmed(&shown)
	return text == shown || len(shown) > 250 && isPart(text, shown)
}

// trimmed is a text as trackers keep it.
func trimmed(text *string) string {
	if text == nil {
		return ""
	}
	return strings.TrimSpace(*text)
}
