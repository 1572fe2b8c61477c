package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// json redacts a JSON text and leaves everything else of it as it is written; ok is false when it is none.
func (s *sheet) json(text []byte) (clean []byte, ok bool) { return walkJSON(text, s.scalar) }

// walkJSON gives a JSON text with some values, and names of members, replaced by strings; ok is false when it is none.
func walkJSON(text []byte, edit func(place, jsontext.Value) (string, bool)) (changed []byte, ok bool) {
	w := &jsonWalk{
		text: text, edit: edit,
		in: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
	}
	if err := w.run(); err != nil {
		return nil, false
	}
	return append(w.out, text[w.copied:]...), true
}

// place is where in a JSON text something stands.
type place struct {
	// name is what a value is called. An item of an array is called like the array, and everything below a credential like
	// the credential.
	name string
	// isName tells that it is the name of a member itself.
	isName bool
}

// jsonWalk goes through a JSON text and copies it with changes.
type jsonWalk struct {
	in     *jsontext.Decoder
	text   []byte
	edit   func(place, jsontext.Value) (string, bool)
	out    []byte
	copied int64
	// names are the member names that lead to where the walk is, one for each open array or object.
	names []string
	// under is the depth at which everything is a credential because of a name above it; 0 is nowhere.
	under int
}

func (w *jsonWalk) run() error {
	values := 0
	for {
		kind := w.in.PeekKind()
		var err error
		switch kind {
		case '{', '[', '}', ']':
			err = w.bracket(kind)
		default:
			err = w.value()
		}
		if errors.Is(err, io.EOF) && values == 1 {
			return nil
		}
		if err != nil {
			return err
		}
		if w.in.StackDepth() == 0 {
			if values++; values > 1 {
				return errors.New("more than one value")
			}
		}
	}
}

// bracket goes into an array or object, or out of it.
func (w *jsonWalk) bracket(kind jsontext.Kind) error {
	if _, err := w.in.ReadToken(); err != nil {
		return err
	}
	if kind == '}' || kind == ']' {
		w.names = w.names[:len(w.names)-1]
		if len(w.names) < w.under {
			w.under = 0
		}
		return nil
	}
	// What an array or object is called counts for everything in it.
	name := w.name()
	w.names = append(w.names, "")
	if w.under == 0 && (isSecret(name) || isLogin(name)) {
		w.under = len(w.names)
		w.names[len(w.names)-1] = name
	} else if w.under > 0 || kind == '[' {
		w.names[len(w.names)-1] = name
	}
	return nil
}

// name is what the next value is called: the member's name, or that of the array which it is in.
func (w *jsonWalk) name() string {
	if len(w.names) == 0 {
		return ""
	}
	return w.names[len(w.names)-1]
}

// value takes a name or a value that is neither array nor object.
func (w *jsonWalk) value() error {
	raw, err := w.in.ReadValue()
	if err != nil {
		return err
	}
	within, length := w.in.StackIndex(w.in.StackDepth())
	isName := within == '{' && length%2 == 1
	if isName && w.under == 0 {
		w.names[len(w.names)-1] = unquoted(raw)
	}
	if text, changed := w.edit(place{w.name(), isName}, raw); changed {
		end := w.in.InputOffset()
		w.out = append(w.out, w.text[w.copied:end-int64(len(raw))]...)
		w.out, _ = jsontext.AppendQuote(w.out, text) // it is UTF-8
		w.copied = end
	}
	return nil
}

// unquoted is the text of a string. What is not UTF-8 in it is replaced.
func unquoted(raw jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, raw)
	return string(text)
}

// scalar gives what comes in place of a value that may not stay.
func (s *sheet) scalar(at place, raw jsontext.Value) (text string, changed bool) {
	switch {
	case at.isName:
		return "", false
	case raw.Kind() == '0':
		return s.hide(at.name, string(raw))
	case raw.Kind() != '"':
		return "", false
	}
	text = unquoted(raw)
	if hidden, secret := s.hide(at.name, text); secret {
		return hidden, true
	}
	if at.name == "data" && len(text) > s.redactor.maxData {
		s.spoilt(payloadGone)
		return elide(text), true
	}
	return "", false
}

// elide gives what stands in place of a payload: digest and size of the content, or of the text where it is no base64.
// What stands in place of one already stays.
func elide(text string) string {
	if elided.FindString(text) == text {
		return text
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		content = []byte(text)
	}
	return fmt.Sprintf("{{elided %x %d}}", sha256.Sum256(content), len(content))
}
