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
	refs  []ref
}

// edit replaces a part of a reply by the id that stands for ref or, where it has none, by text.
type edit struct {
	start, end int
	ref        ref
	text       []byte
}

// translateDocument translates a reply of one side. Attachment content is not read into memory. After an error the document is closed.
func (m *Map) translateDocument(ctx context.Context, side Side, document *mapping.Document, of *shape) error {
	if document.NotModified {
		return nil
	}
	text, err := document.Load(m.o.Split)
	if err != nil {
		return &mapping.StreamError{Err: err}
	}
	s := &scanner{Map: m, side: side, in: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
	var ids map[ref]int64
	if err = s.value(of); err == nil {
		ids, err = m.clients(ctx, side, s.refs)
	}
	if err == nil {
		err = document.Replace(s.replaced(text, ids))
	}
	if err != nil {
		_ = document.Close() // the first error is the one to tell
		return fmt.Errorf("translate the ids of a reply: %w", err)
	}
	return nil
}

// replaced makes all edits of a text.
func (s *scanner) replaced(text []byte, ids map[ref]int64) []byte {
	out, from := make([]byte, 0, len(text)+8*len(s.edits)), 0
	for _, e := range s.edits {
		out = append(append(out, text[from:e.start]...), e.text...)
		if from = e.end; e.text == nil {
			out = strconv.AppendInt(out, ids[e.ref], 10)
		}
	}
	return append(out, text[from:]...)
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
	if of.name != "" && value.Kind() == '"' {
		before := unquoted(value)
		if after := s.names.client(s.side, of.name, before); after != before {
			end := int(s.in.InputOffset())
			quoted, _ := jsontext.AppendQuote(nil, after) // what is not UTF-8 is replaced
			s.edits = append(s.edits, edit{start: end - len(value), end: end, text: quoted})
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
			if member, ok := of.members[unquoted(name)]; ok {
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
	end, text := int(s.in.InputOffset()), string(value)
	start := end - len(value)
	if value.Kind() == '"' {
		text, start, end = unquoted(value), start+1, end-1
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err == nil && id > 0 {
		r := ref{kind, id}
		s.edits, s.refs = append(s.edits, edit{start: start, end: end, ref: r}), append(s.refs, r)
	}
}

// unquoted is the text of a JSON string that is known to be valid.
func unquoted(value jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}
