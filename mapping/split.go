package mapping

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"sync"
)

// SplitOptions says how Split reads a document. The zero value is for what clients send.
type SplitOptions struct {
	Limits Limits
	// Dir is where payloads beyond Limits.BlobMemory lie; default is the system's directory for temporary files.
	// Memory is only saved if that is not itself kept in memory (tmpfs).
	Dir string
	// Depths are those at which a member `data` is a payload: 1 is a member of the outermost object. Default is any.
	Depths []int
	// Tolerant is for what trackers answer: nothing is refused that is JSON, and no value is changed. A payload is then
	// only what is canonical base64 already; any other string stays in the skeleton as it was sent or, when it
	// is longer than 4 KiB, becomes a Blob that is not Base64.
	// Otherwise white space is taken out of payloads (MIME breaks lines), missing padding is added and bits beyond the
	// last byte are cleared, and what is not base64 then is an error.
	Tolerant bool
	// Hold is asked for memory, in bytes, before the document takes up more of it than was granted so far; payloads do not
	// count. Its error ends Split. Nil grants everything.
	Hold func(more int) error
}

// splitStep is how much memory is asked for at a time.
const splitStep = 64 << 10

// splitInline is the length up to which a value that is not base64 returns to the skeleton in tolerant mode.
const splitInline = 4 << 10

// Split reads one JSON document, appends it to dst without its payloads, and returns these apart. A payload is a string
// value of a member named `data`; in its place dst gets a placeholder, see AppendBlob. Other values and names stay as
// they were written, white space between them is left out.
//
// Split accepts what RFC 8259 does, except duplicate member names, invalid UTF-8, half surrogate pairs, a byte order mark
// and what goes beyond the limits. Its errors are *SyntaxError, *LimitError, *BlobError when a payload could not be stored,
// and otherwise what src returned, wrapped. A payload that is not base64 is only reported when the rest of the document
// is sound, because a tracker parses first (wire-facts.md, section 1). An error of Hold is given as it is. With an error there are no blobs to close.
func Split(dst []byte, src io.Reader, opts SplitOptions) (skeleton []byte, blobs []*Blob, err error) {
	s := splitters.Get().(*splitter)
	defer s.recycle()
	s.reset(dst, src, opts)
	if err := s.run(); err != nil {
		_ = CloseBlobs(s.blobs) // the first error is the one to tell
		_ = s.spool.release()
		return dst, nil, err
	}
	return s.out, s.blobs, s.spool.release()
}

// splitters keeps the buffers of finished splits.
var splitters = sync.Pool{New: func() any {
	s := new(splitter)
	s.stage.hash = sha256.New()
	return s
}}

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
	in     splitInput
	stage  base64Stage
	names  splitNames
	limits Limits
	opts   SplitOptions

	out     []byte
	start   int // of the skeleton in out
	want    splitWant
	members int
	granted int  // by opts.Hold
	payload bool // the value that comes belongs to a member `data` at a depth asked for

	spool *blobSpool
	blobs []*Blob
	bad   error // the first payload that is not base64
}

func (s *splitter) reset(dst []byte, src io.Reader, opts SplitOptions) {
	s.limits, s.opts = opts.Limits.WithDefaults(), opts
	s.in.reset(src, s.limits.Body)
	s.names.reset()
	s.out, s.start, s.want, s.members, s.granted, s.payload = dst, len(dst), wantValue, 0, 0, false
	s.spool, s.blobs, s.bad = newBlobSpool(opts.Dir, s.limits.BlobMemory), nil, nil
}

// recycle lets go of everything that belongs to the caller.
func (s *splitter) recycle() {
	s.in.src, s.in.err, s.opts = nil, nil, SplitOptions{}
	s.out, s.spool, s.blobs, s.bad, s.stage.out = nil, nil, nil, nil, nil
	splitters.Put(s)
}

// run takes the text token by token.
func (s *splitter) run() error {
	if err := s.mark(); err != nil {
		return err
	}
	for s.in.skipSpace() {
		if err := s.token(s.in.window[s.in.pos]); err != nil {
			return err
		}
		if len(s.out)-s.start > s.limits.Skeleton {
			return s.exceeds(LimitSkeleton, s.limits.Skeleton)
		}
		if err := s.hold(0); err != nil {
			return err
		}
	}
	if err := s.in.failure(); s.want != wantNothing || !s.in.done() {
		return err
	}
	return s.bad
}

// hold asks for the memory of the skeleton and of what is to be added to it.
func (s *splitter) hold(more int) error {
	lacking := len(s.out) - s.start + more - s.granted
	if s.opts.Hold == nil || lacking <= 0 {
		return nil
	}
	steps := (lacking + splitStep - 1) / splitStep * splitStep
	s.granted += steps
	return s.opts.Hold(steps)
}

// mark refuses a byte order mark by its name.
func (s *splitter) mark() error {
	const bom = "\xEF\xBB\xBF"
	for s.in.end < len(bom) && s.in.fill() {
	}
	if bytes.HasPrefix(s.in.unread(), []byte(bom)) {
		return s.in.wrong(SyntaxBOM, 0)
	}
	return nil
}

// token takes what begins with the unread byte c.
func (s *splitter) token(c byte) error {
	switch s.want {
	case wantNothing:
		return s.in.wrong(SyntaxTrailing, 0)
	case wantNext:
		return s.next(c)
	case wantName, wantNameOrEnd:
		if c == '}' && s.want == wantNameOrEnd {
			return s.leave()
		}
		return s.name(c)
	case wantElement:
		if c == ']' {
			return s.leave()
		}
	}
	return s.value(c)
}

// next takes the comma or the closing bracket after a value.
func (s *splitter) next(c byte) error {
	inObject := s.names.inObject()
	switch {
	case c == ',' && inObject:
		s.want = wantName
	case c == ',':
		s.want = wantValue
	case c == '}' && inObject, c == ']' && !inObject:
		return s.leave()
	default:
		return s.in.wrong(SyntaxUnexpected, 0)
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
	if s.names.depth() >= s.limits.Depth {
		return s.exceeds(LimitDepth, s.limits.Depth)
	}
	s.names.enter(c == '{')
	s.want = wantElement
	if c == '{' {
		s.want = wantNameOrEnd
	}
	s.take(c)
	return nil
}

// leave closes what was opened last.
func (s *splitter) leave() error {
	s.names.leave()
	s.take(s.in.window[s.in.pos])
	s.valueDone()
	return nil
}

// valueDone says what must come after a value.
func (s *splitter) valueDone() {
	s.want = wantNext
	if s.names.depth() == 0 {
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
	name, fresh := s.names.add(s.out[from+1 : len(s.out)-1])
	if !fresh {
		return newSyntaxError(SyntaxDuplicate, at)
	}
	s.payload = string(name) == "data" &&
		(len(s.opts.Depths) == 0 || slices.Contains(s.opts.Depths, s.names.depth()))
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

func (s *splitter) exceeds(kind LimitKind, limit int) error {
	return &LimitError{Kind: kind, Max: int64(limit), Offset: s.in.offset()}
}
