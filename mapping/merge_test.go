package mapping

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"portico/mapping/jsonblob"
)

// closing counts how often a stream was closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

// streamed makes a part that arrives as a stream after its first bytes.
func streamed(text string) (*Document, *closing) {
	rest := &closing{Reader: strings.NewReader(text[1:])}
	return NewStream([]byte(text[:1]), rest, int64(len(text))), rest
}

func written(t *testing.T, d *Document) string {
	t.Helper()
	var all strings.Builder
	n, err := d.WriteTo(&all)
	if err != nil || n != d.Len() {
		t.Fatalf("wrote %d of %d bytes: %v", n, d.Len(), err)
	}
	return all.String()
}

func TestMergedTheFirstCounts(t *testing.T) {
	first := NewDocument([]byte(`{"attachments":{"8":{"id":8}},"bugs":{"5":[{"id":1}],"12":[]}}`))
	second, rest := streamed(`{"bugs":{"7":[{"id":2,"data":"QUFB"}],"3":[],"5":[{"id":9}]},"attachments":{"6":{"id":6,"data":null},"8":{"id":8,"data":null}}}`)
	reply, err := MergeAttachments([]*Document{first, second}, jsonblob.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bugs":{"5":[{"id":1}],"12":[],"7":[{"id":2,"data":"QUFB"}],"3":[]},"attachments":{"8":{"id":8},"6":{"id":6,"data":null}}}`
	if got := written(t, reply); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := reply.Close(); err != nil || rest.closed == 0 {
		t.Errorf("the stream was closed %d times (%v)", rest.closed, err)
	}
}

func TestMergedPayloadsStayOnDisk(t *testing.T) {
	dir := t.TempDir()
	options := jsonblob.SplitOptions{Dir: dir, Limits: jsonblob.Limits{BlobMemory: 1}}
	part := func(letter string) (*Document, *closing) {
		return streamed(`{"bugs":{"` + letter + `":[{"data":"` + strings.Repeat("QUFB", 1<<16) + letter + `AAA"}]},"attachments":{}}`)
	}
	one, first := part("1")
	two, second := part("2")
	reply, err := MergeAttachments([]*Document{one, two}, options)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := reply.Load(options); err != nil || len(text) > 200 || len(reply.Blobs()) != 2 {
		t.Errorf("%d payloads are apart, and %d bytes remain (%v)", len(reply.Blobs()), len(text), err)
	}
	got := written(t, reply)
	if at2, at1 := strings.Index(got, "QUFB2AAA"), strings.Index(got, "QUFB1AAA"); at1 < 0 || at2 < at1 || len(got) < 1<<19 {
		t.Errorf("the payloads are at %d and %d of %d bytes", at2, at1, len(got))
	}
	if err := reply.Close(); err != nil || first.closed == 0 || second.closed == 0 {
		t.Errorf("the streams were closed %d and %d times (%v)", first.closed, second.closed, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left (%v)", len(left), err)
	}
}

func TestMergingTellsThoseWhoWatch(t *testing.T) {
	part, _ := streamed(`{"bugs":{"1":[]},"attachments":{}}`)
	var seen strings.Builder
	whole := false
	part.Tee(&seen, func(all bool) { whole = all })
	other := NewDocument([]byte(`{"bugs":{},"attachments":{}}`))
	reply, err := MergeAttachments([]*Document{part, other}, jsonblob.SplitOptions{})
	if err != nil || whole {
		t.Fatalf("told of the end before it (%v)", err)
	}
	if err := reply.Close(); err != nil || !whole || seen.String() != `{"bugs":{"1":[]},"attachments":{}}` {
		t.Errorf("who watched saw %q, all: %v (%v)", seen.String(), whole, err)
	}
}

func TestPartsThatCannotBeMerged(t *testing.T) {
	for _, bad := range []string{`{"bugs":{"1":[{"data":"`, `[1]`, `{"bugs":`} {
		part, rest := streamed(bad)
		other, otherRest := streamed(`{"bugs":{"2":[{"data":"` + strings.Repeat("QUFB", 9) + `"}]},"attachments":{}}`)
		reply, err := MergeAttachments([]*Document{other, part}, jsonblob.SplitOptions{})
		if err == nil || reply != nil || rest.closed == 0 || otherRest.closed == 0 {
			t.Errorf("%s: %v, closed %d and %d times", bad, err, rest.closed, otherRest.closed)
		}
	}
	broken, _ := streamed(`{"bugs"`)
	broken.rest = io.NopCloser(io.MultiReader(strings.NewReader(`"bugs"`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	_, err := MergeAttachments([]*Document{broken}, jsonblob.SplitOptions{})
	if _, ok := errors.AsType[*StreamError](err); !ok {
		t.Errorf("got %v, want the stream's failure", err)
	}
}

func TestMergingLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]string{
			`"QUFB"`, `"QQ=="`, `"-0E+0"`, `-0E+0`, `-0e+1`, `null`, `"not base64"`, `"` + strings.Repeat("QUFB", 2000) + `"`,
		}), 1, 6).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var want Members
		parts := [2]Members{}
		for i, value := range values {
			id := string(rune('1' + i))
			item := jsontext.Value(`{"data":` + value + `,"n":` + id + `}`)
			want.Set(id, item)
			at := 0
			if i >= cut {
				at = 1
			}
			parts[at].Set(id, item)
		}
		var documents []*Document
		for _, part := range parts {
			document, _ := streamed(`{"bugs":{},"attachments":` + string(part.AppendJSON(nil)) + `}`)
			documents = append(documents, document)
		}
		reply, err := MergeAttachments(documents, jsonblob.SplitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reply.Close() }()
		var got strings.Builder
		if _, err := reply.WriteTo(&got); err != nil {
			t.Fatal(err)
		}
		// Split spells the number that stands for a payload in another way.
		all := strings.ReplaceAll(`{"bugs":{},"attachments":`+string(want.AppendJSON(nil))+`}`, `:-0E+0`, `:-0e+0`)
		if got.String() != all {
			t.Fatalf("got %s, want %s", got.String(), all)
		}
	})
}
