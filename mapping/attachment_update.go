package mapping

import (
	"slices"
	"strings"
)

// AttachmentUpdate changes the metadata and flags of attachments (interface.md,
// Update attachment). Nil means not sent.
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
	// refuses them with code 67399 (wire-facts.md section 7).
	Extra Members
}

// attachmentUpdateOrder is the tracker's order of checks (wire-facts.md section 7).
var attachmentUpdateOrder = []string{
	"path", "ids", "summary", "file_name", "is_obsolete", "is_patch", "is_private", "content_type", "flags", "comment",
}

// DecodeAttachmentUpdate reads and validates the members of an update request.
// pathID is the path's attachment id. Errors are *Error with the codes of
// wire-facts.md section 7; ids that leave out the path's attachment contradict
// it and are refused.
func DecodeAttachmentUpdate(pathID string, members Members) (AttachmentUpdate, error) {
	f := newFields(members)
	request := AttachmentUpdate{
		IDs:         f.attachmentIDs(pathID),
		FileName:    f.notBlank("file_name", CodeJSON),
		Summary:     f.notBlank("summary", CodeSummary),
		Comment:     f.text("comment"),
		ContentType: f.notBlank("content_type", CodeContentType),
		IsPatch:     f.boolean("is_patch", true),
		IsPrivate:   f.boolean("is_private", true),
		IsObsolete:  f.boolean("is_obsolete", true),
		Flags:       f.flags(),
	}
	request.Extra = f.rest
	request.check(f.problems)
	return request, f.problems.first(attachmentUpdateOrder...)
}

// SetDefaults sends content_type along with is_patch, because the raw tracker
// does not force it on update (wire-facts.md section 7).
func (r *AttachmentUpdate) SetDefaults() {
	if r.IsPatch != nil && *r.IsPatch {
		plain := "text/plain"
		r.ContentType = &plain
	}
}

// Validate checks the fields as DecodeAttachmentUpdate does; errors are *Error.
func (r *AttachmentUpdate) Validate() error {
	found := problems{}
	if len(r.IDs) == 0 {
		found.add("path", missing("ids"))
	}
	r.check(found)
	return found.first(attachmentUpdateOrder...)
}

func (r *AttachmentUpdate) check(found problems) {
	if r.ContentType != nil && (r.IsPatch == nil || !*r.IsPatch) {
		checkContentType(found, r.ContentType)
	}
	checkComment(found, r.Comment)
	checkFlags(found, r.Flags)
}

// notBlank takes a text that an update may leave out but not blank.
func (f *fields) notBlank(name string, code int) *string {
	value := f.rest.Get(name)
	if value == nil {
		return nil
	}
	text := f.textOr(name, code)
	if f.problems[name] == nil && (text == nil || strings.TrimSpace(*text) == "") {
		f.problems.add(name, Refuse(code, "The parameter %q cannot be empty.", name))
	}
	return text
}

func (f *fields) attachmentIDs(pathID string) []int64 {
	path, ok := parseID(pathID)
	if !ok {
		f.problems.add("path", attachmentID(pathID))
		return nil
	}
	value := f.rest.Get("ids")
	if value == nil {
		return []int64{path}
	}
	if value.Kind() == 'n' {
		f.rest.Take("ids")
		f.problems.add("ids", Refuse(CodeTargetType, "The parameter \"ids\" cannot be null."))
		return nil
	}
	ids := f.parseIDs(f.list("ids", func() *Error {
		return Refuse(CodeNotScalars, "The parameter \"ids\" must be an array of attachment ids.")
	}))
	if f.problems["ids"] == nil && !slices.Contains(ids, path) {
		f.problems.add("ids", Refuse(CodeBadParameter, "The ids do not name attachment %d of the path; nothing was changed.", path))
	}
	return ids
}

func (f *fields) parseIDs(texts []string) []int64 {
	ids := make([]int64, 0, len(texts))
	for _, text := range texts {
		id, ok := parseID(text)
		if !ok {
			f.problems.add("ids", attachmentID(text))
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// attachmentID tells why a text is no attachment id: not a number (code 52), or
// one that no attachment can have (code 32000, as for an unknown one).
func attachmentID(text string) *Error {
	if isDigits(strings.TrimSpace(text)) {
		return Refuse(CodeJSON, "There is no attachment %s.", strings.TrimSpace(text))
	}
	return notNumeric("ids")
}
