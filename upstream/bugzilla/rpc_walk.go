package bugzilla

import (
	"bufio"
	"bytes"
	"errors"
	"html"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what a walk holds of a text, which may be of any length.
const (
	// maxWalkWord is the length up to which names and values are reported. Longer ones are reported as empty.
	maxWalkWord = 256
	walkBuffer  = 32 << 10
)

// WalkJSON reads a JSON text and calls visit for each value: with the number of objects and arrays around it, the name of the
// member whose value it is, and the value as text, "{" and "[" for objects and arrays. It does not check the text beyond
// telling whether it is whole. An error is one of in.
func WalkJSON(in io.Reader, visit func(depth int, name, value string)) (whole bool, err error) {
	r := bufio.NewReaderSize(in, walkBuffer)
	depth, began, name := 0, false, ""
	var word string
	var present bool // a word that is either a name or a value
	for {
		b, err := r.ReadByte()
		if err != nil {
			return began && depth == 0, endOrError(err)
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			present = true
			if word, err = readString(r); err != nil {
				return false, endOrError(err)
			}
			continue
		case ':':
			name = word
		case ',', '}', ']':
			if present {
				visit(depth, name, word)
			}
			name = ""
			if b != ',' {
				depth--
			}
		case '{', '[':
			visit(depth, name, string(b))
			began, depth, name = true, depth+1, ""
		default:
			if present = true; len(word) < maxWalkWord {
				word += string(rune(b))
			}
			continue
		}
		word, present = "", false
	}
}

// readString reads a JSON string whose first quote has been read.
func readString(r *bufio.Reader) (string, error) {
	kept, backslashes := []byte{'"'}, 0
	for {
		piece, err := r.ReadSlice('"')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		if len(kept) <= maxWalkWord {
			kept = append(kept, piece[:min(len(piece), maxWalkWord+1)]...)
		}
		text := bytes.TrimSuffix(piece, []byte{'"'})
		if rest := bytes.TrimRight(text, `\`); len(rest) > 0 {
			backslashes = len(text) - len(rest)
		} else {
			backslashes += len(text)
		}
		switch {
		case err != nil: // the buffer is full
		case backslashes%2 == 1:
			backslashes = 0 // this quote is escaped
		case len(kept) > maxWalkWord:
			return "", nil
		default:
			unquoted, _ := jsontext.AppendUnquote(nil, kept) // which replaces what is not UTF-8
			return string(unquoted), nil
		}
	}
}

// walkXML reads an XML text and calls visit at the end of each element: with its depth, 1 for the outermost one, its name, and
// its own text after the last element within, without white space around it. It does not check the text beyond telling whether
// it is whole. An error is one of in.
func walkXML(in io.Reader, visit func(depth int, name, text string)) (whole bool, err error) {
	r := bufio.NewReaderSize(in, walkBuffer)
	depth, began, text := 0, false, ""
	for {
		more, err := readUntil(r, "<")
		if err != nil {
			return began && depth == 0, endOrError(err)
		}
		text += html.UnescapeString(more)
		if next, _ := r.Peek(len("![CDATA[")); bytes.HasPrefix(next, []byte("!--")) {
			_, err = readUntil(r, "-->")
		} else if string(next) == "![CDATA[" {
			more, err = readUntil(r, "]]>")
			text += strings.TrimPrefix(more, "![CDATA[")
		} else if more, err = readUntil(r, ">"); err == nil && !strings.HasPrefix(more, "?") && !strings.HasPrefix(more, "!") {
			began = true
			name, closes := strings.CutPrefix(more, "/")
			if !closes {
				depth, text = depth+1, ""
				name, closes = strings.CutSuffix(name, "/")
			}
			if closes {
				visit(depth, strings.TrimSpace(name), strings.TrimSpace(text))
				depth, text = depth-1, ""
			}
		}
		if err != nil {
			return false, endOrError(err)
		}
	}
}

// readUntil reads up to end and gives what comes before it, empty if that is longer than maxWalkWord.
func readUntil(r *bufio.Reader, end string) (string, error) {
	var kept, tail []byte
	limit := maxWalkWord + len(end)
	for {
		piece, err := r.ReadSlice(end[len(end)-1])
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		if len(kept) <= limit {
			kept = append(kept, piece[:min(len(piece), limit+1)]...)
		}
		tail = append(tail, piece...)
		tail = tail[max(0, len(tail)-len(end)):]
		if err != nil || string(tail) != end {
			continue
		}
		if len(kept) > limit {
			return "", nil
		}
		return string(kept[:len(kept)-len(end)]), nil
	}
}

// eachPiece calls visit for the pieces of a text of any length, which end with ">" or are walkBuffer long. An error is one of in.
func eachPiece(in io.Reader, visit func(piece string)) error {
	r := bufio.NewReaderSize(in, walkBuffer)
	for {
		piece, err := r.ReadSlice('>')
		if len(piece) > 0 {
			visit(string(piece))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return endOrError(err)
		}
	}
}

func endOrError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
