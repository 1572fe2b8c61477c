package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// xml redacts a call or an answer of XML-RPC; ok is false when the text is no XML.
func (s *sheet) xml(text []byte) (clean []byte, ok bool) {
	in := xml.NewDecoder(bytes.NewReader(text))
	// What is looked for is ASCII, and offsets count bytes.
	in.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	w := &xmlWalk{sheet: s, text: text, in: in}
	if err := w.run(); err != nil || w.elements == 0 {
		return nil, false
	}
	return w.result(), true
}

// xmlWalk goes through an XML text and notes what has to change.
type xmlWalk struct {
	*sheet
	in   *xml.Decoder
	text []byte
	cuts []cut
	// words is all text outside of tags so far.
	words    []byte
	open     []xmlElement
	elements int
}

// cut is a piece of a text with what comes in its place.
type cut struct {
	begin, end int64
	text       string
}

// xmlElement is an element that has begun.
type xmlElement struct {
	name string
	// inside is where its content begins, from where its words do.
	inside int64
	from   int
	// called is what a member is called, begin and end tell where its value stands, which has the content.
	called     []string
	begin, end int64
	content    string
}

func (w *xmlWalk) run() error {
	for {
		before := w.in.InputOffset()
		token, err := w.in.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(t.Attr) > 0 {
				return errors.New("elements with attributes")
			}
			w.elements++
			w.open = append(w.open, xmlElement{name: t.Name.Local, inside: w.in.InputOffset(), from: len(w.words)})
		case xml.CharData:
			w.words = append(w.words, t...)
		case xml.EndElement:
			w.leave(before)
		case xml.Comment, xml.Directive:
			return errors.New("comments and directives")
		}
	}
}

// leave ends the innermost element.
func (w *xmlWalk) leave(at int64) {
	last := len(w.open) - 1
	done := w.open[last]
	w.open = w.open[:last]
	if content := string(w.words[done.from:]); done.name == "value" && w.isShort(content) {
		w.cut(done.inside, at, w.caller(content))
	}
	if last > 0 && w.open[last-1].name == "member" {
		member, content := &w.open[last-1], string(w.words[done.from:])
		switch done.name {
		case "name":
			member.called = append(member.called, strings.TrimSpace(content))
		case "value":
			member.begin, member.end, member.content = done.inside, at, content
		}
	}
	if done.name == "member" {
		w.member(done)
	}
}

// member notes the value of a member that may not stay.
func (w *xmlWalk) member(m xmlElement) {
	for _, name := range m.called {
		hidden, secret := w.hide(name, m.content)
		switch {
		case secret:
		case name == "data" && len(m.content) > w.redactor.maxData:
			w.spoilt(payloadGone)
			hidden = elide(strings.Join(strings.Fields(m.content), ""))
		default:
			continue
		}
		w.cut(m.begin, m.end, hidden)
		return
	}
}

// cut notes what comes in place of a value. Whatever was noted inside of it ended before, and goes with it.
func (w *xmlWalk) cut(begin, end int64, hidden string) {
	for len(w.cuts) > 0 && w.cuts[len(w.cuts)-1].begin >= begin {
		w.cuts = w.cuts[:len(w.cuts)-1]
	}
	w.cuts = append(w.cuts, cut{begin, end, "<string>" + hidden + "</string>"})
}

// result is the text with the changes.
func (w *xmlWalk) result() []byte {
	var out []byte
	last := int64(0)
	for _, c := range w.cuts {
		out = append(append(out, w.text[last:c.begin]...), c.text...)
		last = c.end
	}
	return append(out, w.text[last:]...)
}
