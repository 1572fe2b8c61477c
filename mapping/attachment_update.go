package mapping

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AttachmentUpdate changes the metadata and flags of attachments (interface.md
// section 3.7). Nil means not sent.
type AttachmentUpdate struct {
	// IDs are the attachments to change, the path's always among them.
	IDs         []int64
	FileName    *string
	Summary     *string
	Comment     *string
	ContentType *string
	IsPatch     *bool
	IsPrivate   *bool
	IsObsolete  *bool
	Flags       []FlagChange
	// Extra keeps members that the interface does not name; a 5.x tracker
	// refuses them with code 67399 (tracker-behaviour.md section 7).
	Extra Members
}

// attachmentUpdateOrder is the tracker's order of checks, which sets fields by its own names for them (tracker-behaviour.md section 7).
var attachmentUpdateOrder = []string{
	"path?", "ids", "flags?", "summary", "file_name", "is_obsolete", "is_patch", "is_private", "content_type", "flags", "comment",
}

// DecodeAttachmentUpdate reads and validates the members of an update request.
// pathID is the path's attachment id. Errors are *Error with the codes of
// tracker-behaviour.md section 7; ids that leave out the path's attachment contradict
// it and are refused.
func DecodeAttachmentUpdate(pathID string, members Members) (AttachmentUpdate, error) {
	f := newFields(members)
	request := AttachmentUpdate{
		IDs:         f.attachmentIDs(pathID),
		FileName:    f.notBlank("file_name", CodeJSON),
		Summary:     f.notBlank("summary", CodeSummary),
		Comment:     f.text("comment"),
		ContentType: f.mimeType(),
		IsPatch:     f.boolean("is_patch", true),
		IsPrivate:   f.boolean("is_private", true),
		IsObsolete:  f.boolean("is_obsolete", true),
		Flags:       f.flags(),
	}
	request.Extra = f.rest
	if request.ContentType != nil && (request.IsPatch == nil || !*request.IsPatch) {
		checkContentType(f.problems, request.ContentType)
	}
	return request, f.problems.first(attachmentUpdateOrder...)
}

// SetDefaults sends content_type along with is_patch, because the raw tracker
// does not force it on update (tracker-behaviour.md section 7).
func (r *AttachmentUpdate) SetDefaults() {
	if r.IsPatch != nil && *r.IsPatch {
		r.ContentType = new("text/plain")
	}
}

// notBlank takes a text that an update may leave out but not blank.
func (f *fields) notBlank(name string, code int) *string {
	sent := f.rest.Get(name) != nil
	text := f.text(name)
	if sent && f.problems[name] == nil && (text == nil || isFalsy(strings.TrimSpace(*text))) {
		f.problems.refuse(name, code, "The parameter %q cannot be empty.", name)
	}
	return text
}

// mimeType takes content_type without the blanks around it, which the tracker does
// not store. Null is no type.
func (f *fields) mimeType() *string {
	sent := f.rest.Get("content_type") != nil
	text := f.trimmed("content_type", CodeContentType)
	if sent && text == nil {
		f.problems.refuse("content_type", CodeContentType, "The parameter \"content_type\" cannot be null.")
	}
	return text
}

func (f *fields) attachmentIDs(pathID string) []int64 {
	path, ok := parseDigits(pathID)
	if !ok {
		f.problems.add("path?", attachmentID(pathID))
		return nil
	}
	value := f.rest.Take("ids")
	if value == nil {
		return []int64{path}
	}
	ids, err := parseAttachmentIDs(value)
	f.problems.add("ids", err)
	if err == nil && !slices.Contains(ids, path) {
		f.problems.refuse("ids", CodeBadParameter, "The ids do not name attachment %d of the path; nothing was changed.", path)
	}
	return ids
}

// parseAttachmentIDs reads an array of ids or one id. As the tracker does, it looks
// first whether there is anything but strings, numbers and null, and then at one
// after the other.
func parseAttachmentIDs(value jsontext.Value) ([]int64, *Error) {
	list := items(value)
	if slices.ContainsFunc(list, isNoScalar) {
		return nil, notScalars("ids", "attachment ids")
	}
	ids := make([]int64, 0, len(list))
	for _, item := range list {
		text, ok := wordText(item)
		if !ok {
			return nil, Refuse(CodeTargetType, "The parameter \"ids\" cannot be null or have null in it.")
		}
		id, ok := parseDigits(text)
		if !ok {
			return nil, attachmentID(text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// attachmentID tells why a text is no attachment id: not a number (code 52), or
// one that no attachment can have (code 32000, as for an unknown one).
func attachmentID(text string) *Error {
	if isDigits(text) {
		return Refuse(CodeJSON, "There is no attachment %s.", text)
	}
	return notNumeric("ids")
}
