package mapping

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"portico/mapping/jsonblob"
)

// MergeAttachments makes one reply of the replies that several trackers gave to
// parts of a request. Bugs and attachments come in the order in which the request
// names them; what it names otherwise, such as a bug by its alias, comes after, in
// the order of the parts. Payloads are put aside as options say, never on the heap.
//
// The parts belong to the reply, and are closed with it or when this fails. Errors
// are those of Document.Load, or that a reply is no object.
func MergeAttachments(request AttachmentsRequest, parts []*Document, options jsonblob.SplitOptions) (*Document, error) {
	whole := &Document{onClose: func() {
		for _, part := range parts {
			_ = part.Close() // the payloads are closed once more, by the whole
		}
	}}
	var bugs, attachments Members
	var failed error
	for _, part := range parts {
		members, err := loadMembers(part, options, &whole.blobs)
		failed = errors.Join(failed, err)
		bugs = append(bugs, splitObject(members.Get("bugs"))...)
		attachments = append(attachments, splitObject(members.Get("attachments"))...)
	}
	if failed == nil {
		var text Members
		text.Set("bugs", inOrder(bugs, request.Bugs).AppendJSON(nil))
		text.Set("attachments", inOrder(attachments, request.Attachments).AppendJSON(nil))
		failed = whole.Replace(text.AppendJSON(nil))
	}
	if failed != nil {
		return nil, errors.Join(failed, whole.Close())
	}
	return whole, nil
}

// loadMembers loads a part, adds its payloads to a list, and gives its members as
// they refer to that list.
func loadMembers(part *Document, options jsonblob.SplitOptions, blobs *[]*jsonblob.Blob) (Members, error) {
	text, err := part.Load(options)
	if err != nil {
		return nil, err
	}
	moved := movePlaceholders(text, len(*blobs))
	*blobs = append(*blobs, part.Blobs()...)
	return ParseMembers(moved)
}

// movePlaceholders adds to the place of every payload that a text refers to.
func movePlaceholders(text []byte, by int) []byte {
	if by == 0 {
		return text
	}
	var moved []byte
	for before, index := range jsonblob.Placeholders(text) {
		moved = append(moved, before...)
		if index >= 0 {
			moved = jsonblob.AppendPlaceholder(moved, index+by)
		}
	}
	return moved
}

// inOrder gives the members in the order of ids, each once, and then the others. Of
// members with one name the first counts.
func inOrder(members Members, ids []string) Members {
	place := make(map[string]int, len(ids)) // below 0
	for i, id := range slices.Backward(ids) {
		if number, err := strconv.ParseUint(strings.TrimSpace(id), 10, 64); err == nil {
			place[strconv.FormatUint(number, 10)] = i - len(ids)
		}
	}
	seen := make(map[string]bool, len(members))
	members = slices.DeleteFunc(members, func(member Member) bool {
		before := seen[member.Name]
		seen[member.Name] = true
		return before
	})
	slices.SortStableFunc(members, func(a, b Member) int { return place[a.Name] - place[b.Name] })
	return members
}
