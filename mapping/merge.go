package mapping

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MergeAttachments makes one answer of the answers that several trackers gave to
// parts of a request. Bugs and attachments come in the order in which the request
// names them; what it names otherwise, such as a bug by its alias, comes after, in
// the order of the parts. Payloads are put aside as options say, never on the heap.
//
// The parts belong to the reply, and are closed with it or when this fails. Errors
// are those of Document.Load, or of an answer that is no object.
func MergeAttachments(request AttachmentsRequest, parts []*Document, options SplitOptions) (Attachments, error) {
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
		bugs = append(bugs, splitIf(members.Get("bugs"))...)
		attachments = append(attachments, splitIf(members.Get("attachments"))...)
	}
	if failed == nil {
		var text Members
		text.Set("bugs", inOrder(bugs, request.Bugs).AppendJSON(nil))
		text.Set("attachments", inOrder(attachments, request.Attachments).AppendJSON(nil))
		failed = whole.Replace(text.AppendJSON(nil))
	}
	if failed != nil {
		return Attachments{}, errors.Join(failed, whole.Close())
	}
	return Attachments{Document: whole}, nil
}

// loadMembers loads a part, adds its payloads to a list, and gives its members as
// they refer to that list.
func loadMembers(part *Document, options SplitOptions, blobs *[]*Blob) (Members, error) {
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
	for {
		n := toPlaceholder(text)
		moved = append(moved, text[:n]...)
		if n == len(text) {
			return moved
		}
		index, width, _ := placeholderIndex(text[n:])
		moved = appendPlaceholder(moved, index+by)
		text = text[n+width:]
	}
}

// splitIf takes an object apart; what is none has no members.
func splitIf(object jsontext.Value) Members {
	if object.Kind() != '{' {
		return nil
	}
	return splitObject(object)
}

// inOrder gives the members in the order of ids, each once, and then the others. Of
// members with one name the first counts.
func inOrder(members Members, ids []string) Members {
	at := make(map[string]int, len(members))
	for i := range members {
		if _, twice := at[members[i].Name]; !twice {
			at[members[i].Name] = i
		}
	}
	ordered := make(Members, 0, len(members))
	take := func(name string) {
		if i, ok := at[name]; ok {
			ordered = append(ordered, members[i])
			delete(at, name)
		}
	}
	for _, id := range ids {
		if number, err := strconv.ParseUint(strings.TrimSpace(id), 10, 64); err == nil {
			take(strconv.FormatUint(number, 10))
		}
	}
	for i := range members {
		take(members[i].Name)
	}
	return ordered
}
