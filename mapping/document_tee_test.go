package mapping_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// teed reads a document through a tee by do and tells what the tee saw.
func teed(t *testing.T, document *mapping.Document, w io.Writer, do func(*mapping.Document)) (whole bool) {
	t.Helper()
	told := 0
	document.Tee(w, func(all bool) { whole = all; told++ })
	do(document)
	_ = document.Close()
	_ = document.Close()
	if told != 1 {
		t.Errorf("the tee was told %d times of the end, want once", told)
	}
	return whole
}

// full is a writer that takes so many bytes and then fails.
type full struct {
	bytes.Buffer
	space int
}

func (f *full) Write(p []byte) (int, error) {
	if f.Len()+len(p) > f.space {
		return 0, errors.New("full")
	}
	return f.Buffer.Write(p)
}

// TestTee: it sees what the tracker sent, knows when that is not all, and never fails the reader.
func TestTee(t *testing.T) {
	const text = `{"bugs":{"1":[{"id":1,"data":"aGVsbG8="}]}}`
	write := func(d *mapping.Document) {
		var client strings.Builder
		if _, err := d.WriteTo(&client); err != nil || client.String() != text {
			t.Errorf("the client got %q (%v)", client.String(), err)
		}
	}
	load := func(d *mapping.Document) { _, _ = d.Load(jsonblob.SplitOptions{}) }
	leave := func(*mapping.Document) {}
	memory := func() *mapping.Document { return mapping.NewDocument([]byte(text)) }
	arriving := func() *mapping.Document {
		return mapping.NewStream([]byte(text[:10]), io.NopCloser(io.MultiReader(strings.NewReader(text[10:20]), strings.NewReader(text[20:]))), -1)
	}
	hangUp := func(d *mapping.Document) { _, _ = d.WriteTo(&full{space: 10}) }
	for name, c := range map[string]struct {
		document *mapping.Document
		do       func(*mapping.Document)
		space    int
		seen     string
	}{
		"in memory":         {memory(), write, 100, text},
		"never written":     {memory(), leave, 100, text},
		"written":           {arriving(), write, 100, text},
		"loaded":            {arriving(), load, 100, text},
		"never read":        {arriving(), leave, 100, text[:10]},
		"client gone":       {arriving(), hangUp, 100, text[:20]},
		"full at once":      {arriving(), write, 0, ""},
		"full in the midst": {arriving(), write, 10, text[:10]},
	} {
		seen := &full{space: c.space}
		if whole := teed(t, c.document, seen, c.do); whole != (c.seen == text) || seen.String() != c.seen {
			t.Errorf("%s: the tee saw %q, all of it: %t", name, seen.String(), whole)
		}
	}
}
