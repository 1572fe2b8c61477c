package mapping

import (
	"portico/mapping/jsonblob"
	"slices"
	"strings"
)

// AttachmentsRequest asks for the attachments of bugs, for single attachments,
// or for both (interface.md section 3.4).
// Query parameters ids and attachment_ids join the path (tracker-behaviour.md section 5).
type AttachmentsRequest struct {
	// Bugs are ids or aliases. For BugAttachments the first is the path's.
	Bugs []string
	// Attachments are ids. For Attachment the first is the path's.
	Attachments []string
	// Include and Exclude filter the members of each attachment.
	Include, Exclude []string
	// IfNoneMatch is the client's header, for a response of 304.
	IfNoneMatch string
}

// Validate refuses attachment ids that are no numbers; errors are *Error.
func (r *AttachmentsRequest) Validate() error {
	for _, id := range r.Attachments {
		if !isDigits(id) {
			return notNumeric("attachment_ids")
		}
	}
	return nil
}

// AttachmentCreate attaches one file to one or several bugs (interface.md
// section 3.6).
type AttachmentCreate struct {
	// Bugs are the ids or aliases to attach to, the path's always among them
	// unless PathBug is set.
	Bugs []string
	// PathBug is the path's id or alias where the names alone do not tell whether
	// Bugs has that bug too: an alias and a number, or two aliases, may be the same
	// bug. The client of the tracker finds out and calls Settle.
	PathBug string
	// Conflict says that the client's ids did not name the path's bug, which
	// then won.
	Conflict bool
	// Data is the content. The caller that decoded the request closes it.
	Data        *jsonblob.Blob
	FileName    *string
	Summary     *string
	ContentType *string
	Comment     *string
	IsPatch     *bool
	IsPrivate   *bool
	Flags       []FlagChange
	// Extra keeps the members that the interface does not name, obsoletes too,
	// which trackers ignore (tracker-behaviour.md section 6).
	Extra Members
}

// attachmentCreateOrder is the tracker's order of checks (tracker-behaviour.md section 6).
var attachmentCreateOrder = []string{
	"data?", "ids", "data", "summary", "file_name", "is_private", "is_patch", "content_type",
	"flags?", "flags", "comment",
}

// DecodeAttachmentCreate reads and validates the members of a create request.
// pathBug is the path's id or alias; blobs are those that Split took out of the
// body. Errors are *Error with the codes of tracker-behaviour.md section 6.
func DecodeAttachmentCreate(pathBug string, members Members, blobs []*jsonblob.Blob) (AttachmentCreate, error) {
	f := newFields(members)
	request := AttachmentCreate{
		Data:        f.payload(blobs),
		FileName:    f.text("file_name"),
		Summary:     f.text("summary"),
		ContentType: f.trimmed("content_type", CodeContentType),
		Comment:     f.text("comment"),
		IsPatch:     f.boolean("is_patch", false),
		IsPrivate:   f.boolean("is_private", false),
		Flags:       f.flags(),
	}
	f.bugs(&request, pathBug)
	request.Extra = f.rest
	request.check(f.problems)
	return request, f.problems.first(attachmentCreateOrder...)
}

// Named are all ids and aliases that the request holds, the path's first.
func (r *AttachmentCreate) Named() []string {
	if r.PathBug == "" {
		return r.Bugs
	}
	return append([]string{r.PathBug}, r.Bugs...)
}

// Settle clears PathBug: named says that Bugs has that bug under another name; else the
// path wins.
func (r *AttachmentCreate) Settle(named bool) {
	if !named {
		r.Bugs, r.Conflict = []string{r.PathBug}, true
	}
	r.PathBug = ""
}

// SetDefaults fills what the client left out. A patch is text/plain whatever
// the client said (interface.md section 3.6).
func (r *AttachmentCreate) SetDefaults() {
	setDefault(&r.IsPatch, false)
	setDefault(&r.IsPrivate, false)
	if *r.IsPatch {
		r.ContentType = new("text/plain")
	}
}

func (r *AttachmentCreate) check(found problems) {
	if r.Data == nil && found["data"] == nil {
		found.add("data?", missing("data"))
	}
	if r.Data != nil && r.Data.Size() == 0 {
		found.refuse("data", CodeDataEmpty, "The attachment is empty.")
	}
	if r.Summary == nil || isFalsy(strings.TrimSpace(*r.Summary)) {
		found.refuse("summary", CodeSummary, "An attachment needs a summary.")
	}
	if r.FileName == nil || isFalsy(strings.TrimSpace(*r.FileName)) {
		found.refuse("file_name", CodeFileName, "An attachment needs a file_name.")
	}
	if r.IsPatch == nil || !*r.IsPatch {
		checkContentType(found, r.ContentType)
	}
}

// checkContentType refuses what no tracker takes: a MIME type without its two
// parts, or of an unknown major type (tracker-behaviour.md section 6, content_type).
func checkContentType(found problems, contentType *string) {
	if contentType == nil {
		found.refuse("content_type", CodeContentType, "An attachment that is no patch needs a content_type.")
		return
	}
	major, minor, _ := strings.Cut(*contentType, "/")
	majors := []string{"application", "audio", "chemical", "font", "image", "message", "model", "multipart", "text", "video"}
	if minor == "" || !slices.Contains(majors, strings.ToLower(major)) {
		found.refuse("content_type", CodeContentType, "%q is no MIME type that an attachment can have: it must be major/minor, and major must be one of %s.",
			*contentType, strings.Join(majors, ", "))
	}
}

// MaxComment is how many characters of a comment trackers take (tracker-behaviour.md section 6, comment).
const MaxComment = 65535

// payload takes the data member, which Split has replaced by a reference.
func (f *fields) payload(blobs []*jsonblob.Blob) *jsonblob.Blob {
	value := f.rest.Take("data")
	if isNull(value) {
		return nil
	}
	if blob, ok := jsonblob.BlobAt(value, blobs); ok {
		return blob
	}
	text, ok := Text(value)
	if !ok {
		f.problems.add("data", wrongType("data", "a base64 string"))
		return nil
	}
	blob, err := jsonblob.BlobFromEncoded(text)
	if err != nil {
		f.problems.add("data", BadBase64(err))
		return nil
	}
	return blob
}

// BadBase64 makes the error of a payload that cannot be decoded. The raw
// tracker would store what it can make of it (tracker-behaviour.md section 6, data).
func BadBase64(cause error) *Error {
	err := Refuse(CodeDataEmpty, "The attachment's data is not valid base64.")
	err.Err = cause
	return err
}

// bugs takes the bugs to attach to: all of ids when they name the path's bug,
// else the path's alone (docs/divergences.md). Numbers are settled at once, and so
// is what is written alike.
func (f *fields) bugs(request *AttachmentCreate, pathBug string) {
	ids := f.bugIDs()
	request.Bugs, request.PathBug = ids, pathBug
	isAlias := func(ref string) bool { return !IsBugNumber(ref) }
	switch {
	case len(ids) == 0:
		request.Bugs, request.PathBug = []string{pathBug}, ""
	case slices.ContainsFunc(ids, func(id string) bool { return sameRef(id, pathBug) }):
		request.Settle(true)
	case !isAlias(pathBug) && !slices.ContainsFunc(ids, isAlias):
		request.Settle(false)
	}
}

// IsBugNumber reports whether a reference to a bug is a number rather than an alias.
func IsBugNumber(ref string) bool {
	_, ok := parseID(ref)
	return ok
}

// bugIDs takes the ids of bugs. Null is no bug, neither alone nor in an array.
func (f *fields) bugIDs() []string {
	value := f.rest.Take("ids")
	if value == nil {
		return nil
	}
	texts, ok := scalarList(value)
	if ok {
		return texts
	}
	err := Refuse(CodeBadBug, "The parameter \"ids\" cannot be null or have null in it.")
	if slices.ContainsFunc(items(value), isNoScalar) {
		err = notScalars("ids", "bug ids or aliases")
	}
	f.problems.add("ids", err)
	return nil
}

// sameRef compares two bug references as the tracker looks them up: numbers by
// value, aliases without regard to case (tracker-behaviour.md section 5, Bug id).
func sameRef(a, b string) bool {
	left, leftOK := parseID(a)
	right, rightOK := parseID(b)
	if leftOK || rightOK {
		return leftOK && rightOK && left == right
	}
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}
