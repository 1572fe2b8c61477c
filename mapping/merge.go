package mapping

import (
	"errors"

	"portico/mapping/jsonblob"
)

// MergeAttachments makes one reply of the replies that several trackers gave to
// parts of a request. Of bugs or attachments that several parts have, the first counts.
// Payloads are put aside as options say, never on the heap.
//
// The parts belong to the reply, and are closed with it or when this fails. Errors
// are those of Document.Load, or that a reply is no object.
func MergeAttachments(parts []*Document, options jsonblob.SplitOptions) (*Document, error) {
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
		text.Set("bugs", unique(bugs, nameOf).AppendJSON(nil))
		text.Set("attachments", unique(attachments, nameOf).AppendJSON(nil))
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

func nameOf(member Member) string { return member.Name }

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
