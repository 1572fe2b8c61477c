package jsonblob

import (
	"bytes"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// SplitOptions says how Split reads a document. The zero value is for what clients send.
type SplitOptions struct {
	Limits Limits
	// Size is the length of the document in bytes where that is known: what is longer than Limits.BlobMemory goes to a file soon.
	Size int64
	// Dir is the directory for payloads beyond Limits.BlobMemory; default is the system's directory for temporary files.
	// Memory is only saved if that is not itself kept in memory (tmpfs).
	Dir string
	// Files keeps the files of Dir for the next payloads. Nil keeps none.
	Files *Files
	// Depth is the one at which a member `data` is a payload: 1 is a member of the outermost object, 0 any, and a negative one none.
	Depth int
	// Tolerant is for responses of trackers: nothing is refused that is JSON, and no value is changed. A payload is then
	// only what is canonical base64 already; any other string stays in the skeleton as it was sent.
	// Otherwise white space is taken out of payloads (MIME breaks lines), missing padding is added and bits beyond the
	// last byte are cleared, and what is not base64 then is an error.
	Tolerant bool
	// Hold is asked for memory, in bytes, before the document takes up more of it than was granted so far; payloads do not
	// count. Its error ends Split. Nil grants everything.
	Hold func(more int) error
	// Spare is asked for memory, in bytes, that makes reading faster: for a larger buffer, and for payloads that need not go to
	// a file at once. Where it returns false Split does without. The caller may count the memory as free when the blobs are
	// closed. Nil grants everything.
	Spare func(more int) bool
}

const (
	// splitStep is the unit in which memory is asked for.
	splitStep = 4 << 10
	// memberMemory is what a member or element counts for, as its name is remembered and its value taken apart.
	memberMemory = 64
	// namesLinear is the number of members up to which an object's names are compared one by one: most objects have fewer.
	namesLinear = 16
)

// Split reads one JSON document, appends it to dst without its payloads, and returns these apart. A payload is a string
// value of a member named `data`; in its place dst gets a placeholder, see AppendBlob. Other values and names stay as
// they were written, white space between them is left out.
//
// Split accepts what RFC 8259 does, except duplicate member names, invalid UTF-8, half surrogate pairs, a byte order mark
// and what goes beyond the limits. Its errors are *SyntaxError, *LimitError, *BlobError when a payload could not be stored,
// and otherwise what src returned, wrapped. A payload that is not base64 is only reported when the rest of the document
// is sound, because a tracker parses first (tracker-behaviour.md section 1). An error of Hold is returned as it is. With an error
// there are no blobs to close.
func Split(dst []byte, src io.Reader, opts SplitOptions) (skeleton []byte, blobs []*Blob, err error) {
	s := newSplitter(dst, src, opts)
	defer s.in.recycle()
	if err := s.run(); err != nil {
		_ = CloseBlobs(s.blobs) // the first error is the one to tell
		_ = s.spool.release()
		return dst, nil, err
	}
	return s.out, s.blobs, s.spool.release()
}

// splitWant is what the text must go on with.
type splitWant int

const (
	wantValue     splitWant = iota
	wantElement             // a value, or the end of the array just begun
	wantName                // a member name
	wantNameOrEnd           // a member name, or the end of the object just begun
	wantNext                // a comma, or the end of what is open
	wantNothing             // white space only
)

// splitter is the state of one Split. It holds what is open on a stack of its own, so no text can exhaust the goroutine's.
type splitter struct {
	in     input
	limits Limits
	opts   SplitOptions

	out     []byte
	start   int // of the skeleton in out
	want    splitWant
	members int
	granted int  // by opts.Hold
	payload bool // the value that comes belongs to a member `data` at a depth asked for
	levels  []splitLevel
	names   [][]byte // of the open objects, decoded; most are part of the skeleton

	spool *spool
	blobs []*Blob
	bad   error // the first payload that is not base64
}

// splitLevel is one open array or object.
type splitLevel struct {
	object bool
	first  int                 // its first name
	many   map[string]struct{} // its names, once there are more than namesLinear
}

func newSplitter(dst []byte, src io.Reader, opts SplitOptions) *splitter {
	limits := opts.Limits.WithDefaults()
	return &splitter{
		in: newInput(src, limits.Body, opts.Spare), limits: limits, opts: opts,
		out: dst, start: len(dst), spool: newSpool(opts, limits.BlobMemory),
	}
}

// run takes the text token by token.
func (s *splitter) run() error {
	const byteOrderMark = "\xEF\xBB\xBF"
	for s.in.end < len(byteOrderMark) && s.in.fill() {
	}
	if bytes.HasPrefix(s.in.unread(), []byte(byteOrderMark)) {
		return s.in.wrong(SyntaxBOM, 0)
	}
	for s.in.skipSpace() {
		if err := s.token(s.in.window[s.in.pos]); err != nil {
			return err
		}
		if len(s.out)-s.start > s.limits.Skeleton {
			return &LimitError{LimitSkeleton, int64(s.limits.Skeleton)}
		}
		if err := s.hold(0); err != nil {
			return err
		}
	}
	if s.want != wantNothing || !s.in.ended() {
		return s.in.failure()
	}
	return s.bad
}

// hold asks for the memory of the skeleton and its members, and of what is to be added.
func (s *splitter) hold(more int) error {
	lacking := len(s.out) - s.start + s.members*memberMemory + more - s.granted
	if s.opts.Hold == nil || lacking <= 0 {
		return nil
	}
	steps := (lacking + splitStep - 1) / splitStep * splitStep
	s.granted += steps
	return s.opts.Hold(steps)
}

// token takes what begins with the unread byte c.
func (s *splitter) token(c byte) error {
	switch {
	case s.want == wantNothing:
		return s.in.wrong(SyntaxTrailing, 0)
	case s.want == wantNext:
		return s.next(c)
	case s.want == wantNameOrEnd && c == '}', s.want == wantElement && c == ']':
		return s.leave(c)
	case s.want == wantName, s.want == wantNameOrEnd:
		return s.name(c)
	}
	return s.value(c)
}

// next takes the comma or the closing bracket after a value.
func (s *splitter) next(c byte) error {
	object := s.levels[len(s.levels)-1].object
	switch {
	case c == '}' && object, c == ']' && !object:
		return s.leave(c)
	case c != ',':
		return s.in.wrong(SyntaxUnexpected, 0)
	}
	s.want = wantValue
	if object {
		s.want = wantName
	}
	s.take(c)
	return nil
}

// take copies the unread byte c.
func (s *splitter) take(c byte) {
	s.out = append(s.out, c)
	s.in.pos++
}

// enter opens an array or object.
func (s *splitter) enter(c byte) error {
	if len(s.levels) >= s.limits.Depth {
		return &LimitError{LimitDepth, int64(s.limits.Depth)}
	}
	s.levels = append(s.levels, splitLevel{object: c == '{', first: len(s.names)})
	s.want = wantElement
	if c == '{' {
		s.want = wantNameOrEnd
	}
	s.take(c)
	return nil
}

// leave closes what was opened last.
func (s *splitter) leave(c byte) error {
	top := len(s.levels) - 1
	s.names, s.levels = s.names[:s.levels[top].first], s.levels[:top]
	s.take(c)
	s.valueDone()
	return nil
}

// valueDone says what must come after a value.
func (s *splitter) valueDone() {
	s.want = wantNext
	if len(s.levels) == 0 {
		s.want = wantNothing
	}
}

// name takes a member name and its colon.
func (s *splitter) name(c byte) error {
	if c != '"' {
		return s.in.wrong(SyntaxUnexpected, 0)
	}
	at, from := s.in.offset(), len(s.out)
	if err := s.text(); err != nil {
		return err
	}
	name := s.out[from+1 : len(s.out)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, s.out[from:]) // it is valid
	}
	if !s.addName(name) {
		return &SyntaxError{at, SyntaxDuplicate}
	}
	s.payload = string(name) == "data" && (s.opts.Depth == 0 || s.opts.Depth == len(s.levels))
	if !s.in.skipSpace() {
		return s.in.failure()
	}
	if s.in.window[s.in.pos] != ':' {
		return s.in.wrong(SyntaxUnexpected, 0)
	}
	s.take(':')
	s.want = wantValue
	return nil
}

// addName adds a member name of the innermost object, and reports whether it is new there.
func (s *splitter) addName(name []byte) bool {
	level := &s.levels[len(s.levels)-1]
	before := s.names[level.first:]
	if level.many == nil && len(before) < namesLinear {
		s.names = append(s.names, name)
		return !slices.ContainsFunc(before, func(known []byte) bool { return bytes.Equal(known, name) })
	}
	if level.many == nil {
		level.many = make(map[string]struct{}, 4*namesLinear)
		for _, known := range before {
			level.many[string(known)] = struct{}{}
		}
	}
	count := len(level.many)
	level.many[string(name)] = struct{}{}
	return len(level.many) > count
}
