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

func stream(head, rest string) *mapping.Document {
	return mapping.NewStream([]byte(head), io.NopCloser(strings.NewReader(rest)), -1)
}

func TestTeeSeesWhatTheTrackerSent(t *testing.T) {
	const text = `{"bugs":{"1":[{"id":1,"data":"aGVsbG8="}]}}`
	write := func(d *mapping.Document) { _, _ = d.WriteTo(io.Discard) }
	load := func(d *mapping.Document) { _, _ = d.Load(jsonblob.SplitOptions{}) }
	for name, c := range map[string]struct {
		document *mapping.Document
		do       func(*mapping.Document)
	}{
		"in memory":     {mapping.NewDocument([]byte(text)), write},
		"never written": {mapping.NewDocument([]byte(text)), func(*mapping.Document) {}},
		"written":       {stream(text[:10], text[10:]), write},
		"loaded":        {stream(text[:10], text[10:]), load},
	} {
		t.Run(name, func(t *testing.T) {
			var seen bytes.Buffer
			if !teed(t, c.document, &seen, c.do) {
				t.Error("the tee was told that part is missing")
			}
			if seen.String() != text {
				t.Errorf("the tee saw %q", seen.String())
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestTeeNeverFailsTheReader(t *testing.T) {
	var client bytes.Buffer
	whole := teed(t, stream("{", "}"), full{}, func(d *mapping.Document) {
		if _, err := d.WriteTo(&client); err != nil {
			t.Errorf("the client's copy failed: %v", err)
		}
	})
	if whole || client.String() != "{}" {
		t.Errorf("whole %v, client got %q", whole, client.String())
	}
}

func TestTeeKnowsThatPartIsMissing(t *testing.T) {
	if teed(t, stream("{", "}"), io.Discard, func(*mapping.Document) {}) {
		t.Error("a document that nobody read counts as seen whole")
	}
}
