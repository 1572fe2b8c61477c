package bugzilla

import (
	"bufio"
	"bytes"
	"errors"
	"html"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping/jsonblob"
)

// Bounds of what a walk holds of a text, which may be of any length.
const (
	// maxWalkWord is the length up to which names and values are reported.
	maxWalkWord = 256
	walkBuffer  = 32 << 10
)

// WalkJSON reads a JSON text and calls visit for each value: with the number of objects and arrays around it, the name of the
// member whose value it is, and the value as text, "{" and "[" for objects and arrays. Long names and values are reported as empty.
// It does not check the text. An error is one of in.
func WalkJSON(in io.Reader, visit func(depth int, name, value string)) error {
	_, err := jsonblob.Copy(&jsonScan{visit: visit}, in)
	return err
}

// jsonScan follows a JSON text of any length, without checking it beyond telling whether it is whole. Strings are skipped at the
// speed of bytes.IndexByte.
type jsonScan struct {
	// visit is that of WalkJSON; nil follows brackets only.
	visit    func(depth int, name, value string)
	depth    int
	inString bool
	escaped  bool   // the next byte of a string
	word     []byte // the beginning of what is a name or a value
	name     string
}

// Write implements io.Writer. It never fails.
func (s *jsonScan) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		from := rest
		if s.inString {
			rest = s.skipString(rest)
			s.keep(from[:len(from)-len(rest)])
			continue
		}
		rest = rest[1:]
		switch b := from[0]; b {
		case ' ', '\t', '\r', '\n':
		case ':':
			s.name = s.takeWord()
		case ',', '}', ']':
			if len(s.word) > 0 {
				s.visit(s.depth, s.name, s.takeWord())
			}
			s.name = ""
			if b != ',' {
				s.depth--
			}
		case '{', '[':
			if s.visit != nil {
				s.visit(s.depth, s.name, string(b))
			}
			s.depth, s.name, s.word = s.depth+1, "", nil
		default:
			s.inString = b == '"'
			s.keep(from[:1])
		}
	}
	return len(p), nil
}

// keep adds to the word as much as is needed to tell that it is too long.
func (s *jsonScan) keep(p []byte) {
	if s.visit != nil && len(s.word) <= maxWalkWord {
		s.word = append(s.word, p[:min(len(p), maxWalkWord+1)]...)
	}
}

// takeWord returns the word, empty if it is too long, and begins another one.
func (s *jsonScan) takeWord() string {
	word := s.word
	s.word = nil
	if len(word) > maxWalkWord {
		return ""
	}
	if bytes.HasPrefix(word, []byte{'"'}) {
		word, _ = jsontext.AppendUnquote(nil, word) // which replaces what is not UTF-8
	}
	return string(word)
}

// skipString returns what follows the closing quote, or nothing. A quote is
// escaped when an odd number of backslashes stands before it, so nothing else of
// the string needs a look.
func (s *jsonScan) skipString(p []byte) []byte {
	if s.escaped {
		s.escaped = false
		p = p[1:]
	}
	for from := 0; ; {
		quote := bytes.IndexByte(p[from:], '"')
		if quote < 0 {
			s.escaped = endsInEscape(p)
			return nil
		}
		from += quote
		if !endsInEscape(p[:from]) {
			s.inString = false
			return p[from+1:]
		}
		from++
	}
}

// endsInEscape reports whether the byte after p is escaped.
func endsInEscape(p []byte) bool {
	trimmed := bytes.TrimRight(p, `\`)
	return (len(p)-len(trimmed))%2 == 1
}

// closed reports whether all brackets are closed that were opened.
func (s *jsonScan) closed() bool { return s.depth == 0 && !s.inString }

// walkXML reads an XML text and calls visit at the end of each element: with its name, and its text after the last tag within, without
// white space around it. Comments within a text are not part of it. It does not check the text. An error is one of in.
func walkXML(in io.Reader, visit func(name, text string)) error {
	r := bufio.NewReaderSize(in, walkBuffer)
	for text := ""; ; {
		piece, err := readUntil(r, '<')
		tag := ""
		if err == nil {
			tag, err = readUntil(r, '>')
		}
		if err != nil {
			return endOrError(err)
		}
		text += html.UnescapeString(piece)
		cdata, isCDATA := strings.CutPrefix(tag, "![CDATA[")
		switch name, closes := strings.CutPrefix(tag, "/"); {
		case isCDATA:
			text += strings.TrimSuffix(cdata, "]]")
		case closes:
			visit(strings.TrimSpace(name), strings.TrimSpace(text))
			text = ""
		case !strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "?"):
			text = ""
		}
		text = text[:min(len(text), 4*maxWalkWord)]
	}
}

// readUntil reads up to a byte and returns what comes before it, without the middle of what is long.
func readUntil(r *bufio.Reader, end byte) (string, error) {
	var kept []byte
	for {
		piece, err := r.ReadSlice(end)
		if kept = append(kept, piece...); len(kept) > 2*maxWalkWord {
			kept = append(kept[:maxWalkWord], kept[len(kept)-maxWalkWord:]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(bytes.TrimSuffix(kept, []byte{end})), err
		}
	}
}

func endOrError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
