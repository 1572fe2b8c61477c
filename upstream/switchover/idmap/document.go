package idmap

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// scanner collects what is to be replaced in a reply.
type scanner struct {
	*Map
	side  Side
	in    *jsontext.Decoder
	edits []edit
	// refs are the ids that edits without a text replace.
	refs []ref
	// text is a buffer for unquoted.
	text []byte
}

// edit replaces a part of a reply by a text or, without one, by the id that clients know.
type edit struct {
	start, end int
	text       []byte
}

// translateDocument translates a reply of one side to an operation. Attachment content is not read into memory. After an error the document is closed.
func (m *Map) translateDocument(ctx context.Context, side Side, document *mapping.Document, operation mapping.Operation) error {
	if document.NotModified {
		return nil
	}
	text, err := document.Load(m.o.Split)
	if err != nil {
		return &mapping.StreamError{Err: err}
	}
	s, _ := m.scanners.Get().(*scanner)
	if s == nil {
		s = &scanner{in: new(jsontext.Decoder)}
	}
	defer m.scanners.Put(s)
	s.Map, s.side, s.edits, s.refs = m, side, s.edits[:0], s.refs[:0]
	s.in.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	var ids []int64
	if err = s.value(shapes[operation]); err == nil {
		ids, err = m.clients(ctx, side, s.refs, made[operation]...)
	}
	if err == nil {
		err = s.replace(document, text, ids)
	}
	if err != nil {
		_ = document.Close() // the first error is the one to tell
		return fmt.Errorf("translate the ids of a reply: %w", err)
	}
	return nil
}

// replace makes all edits of the text of a document. Most change nothing.
func (s *scanner) replace(document *mapping.Document, text []byte, ids []int64) error {
	changes := len(s.edits) > len(s.refs)
	for i, r := range s.refs {
		changes = changes || ids[i] != r.id
	}
	if !changes {
		return nil
	}
	out, from := make([]byte, 0, len(text)+8*len(s.edits)), 0
	for _, e := range s.edits {
		out = append(append(out, text[from:e.start]...), e.text...)
		if from = e.end; e.text == nil {
			out, ids = strconv.AppendInt(out, ids[0], 10), ids[1:]
		}
	}
	return document.Replace(append(out, text[from:]...))
}

// value reads the next value.
func (s *scanner) value(of *shape) error {
	if of == nil {
		return s.in.SkipValue()
	}
	if kind := s.in.PeekKind(); kind == '{' || kind == '[' {
		return s.container(of)
	}
	value, err := s.in.ReadValue()
	if err != nil {
		return err
	}
	if of.id != "" {
		s.id(of.id, value)
	}
	if of.name != "" && s.side == NewSide && value.Kind() == '"' {
		before := string(s.unquoted(value))
		if after := s.names.client(s.side, of.name, before); after != before {
			end := int(s.in.InputOffset())
			quoted, _ := jsontext.AppendQuote(nil, after) // what is not UTF-8 is replaced
			s.edits = append(s.edits, edit{end - len(value), end, quoted})
		}
	}
	return nil
}

// container reads an object or an array.
func (s *scanner) container(of *shape) error {
	opened, err := s.in.ReadToken()
	isObject := opened.Kind() == '{'
	for err == nil && s.in.PeekKind() != '}' && s.in.PeekKind() != ']' {
		next := of.each
		if isObject {
			name, err := s.in.ReadValue()
			if err != nil {
				return err
			}
			if of.keys != "" {
				s.id(of.keys, name)
			}
			if member, ok := of.members[string(s.unquoted(name))]; ok {
				next = member
			}
		}
		err = s.value(next)
	}
	if err == nil {
		_, err = s.in.ReadToken()
	}
	return err
}

// id notes an id that has just been read, as a number or as a text.
func (s *scanner) id(kind Kind, value jsontext.Value) {
	end, text := int(s.in.InputOffset()), []byte(value)
	start := end - len(value)
	if value.Kind() == '"' {
		text, start, end = s.unquoted(value), start+1, end-1
	}
	id, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil && id > 0 {
		s.edits, s.refs = append(s.edits, edit{start: start, end: end}), append(s.refs, ref{kind, id})
	}
}

// unquoted is the text of a JSON string that is known to be valid, until the next call.
func (s *scanner) unquoted(value jsontext.Value) []byte {
	s.text, _ = jsontext.AppendUnquote(s.text[:0], value)
	return s.text
}
