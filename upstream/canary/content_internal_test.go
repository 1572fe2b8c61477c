package canary

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

// reading reads responses of up to 64 KiB.
func reading(t *testing.T) func(*mapping.Document) compare.Reply {
	c := &Canary{options: Options{MaxBody: 64 << 10, Split: jsonblob.SplitOptions{Dir: t.TempDir()}}}
	return func(document *mapping.Document) compare.Reply {
		t.Helper()
		reply, err := c.replyOf(t.Context(), mapping.OpAttachment, upstream.Response{Document: document})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

// inPieces is a document that comes in pieces, so that it is not in memory.
func inPieces(text string) *mapping.Document {
	return mapping.NewStream(nil, io.NopCloser(strings.NewReader(text)), -1)
}

// TestReplyOf: a reply is the same whether the response was in memory, and has no content.
func TestReplyOf(t *testing.T) {
	read := reading(t)
	text := `{"attachments":{"1":{"data":"aGVsbG8="}},"bugs":{}}`
	document := mapping.NewDocument([]byte(text))
	document.ETag = "x"
	got, other := read(document), read(inPieces(text))
	if got.Status != 200 || got.Header["etag"] != "sent" || bytes.Contains(got.Body, []byte("aGVsbG8")) || !bytes.Equal(got.Body, other.Body) {
		t.Errorf("got %+v and %+v", got, other)
	}
	for name, test := range map[string]struct {
		text    string
		failure string
		long    bool
	}{
		"cut off":          {`{"a"`, "bad-answer", false},
		"a line break":     {`{"data":"` + strings.Repeat("QUJD", 4000) + "\n" + strings.Repeat("QUJD", 4000) + `"}`, "bad-answer", false},
		"content cut off":  {`{"data":"` + strings.Repeat("QUJD", 4000), "bad-answer", false},
		"a name twice":     {`{"data":"` + strings.Repeat("QUJD", 4000) + `","data":""}`, "bad-answer", false},
		"long content":     {`{"data":"` + strings.Repeat("QUJD", 400_000) + `"}`, "", false},
		"a long text":      {`{"text":"` + strings.Repeat("QUJD", 20_000) + `"}`, "", true},
		"a text too long":  {`{"text":"` + strings.Repeat("QUJD", 80_000) + `"}`, "endless", false},
		"as deep as it is": {`{"text":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "", false},
	} {
		for _, document := range []*mapping.Document{mapping.NewDocument([]byte(test.text)), inPieces(test.text)} {
			if got := read(document); got.Failure != test.failure || got.Long != test.long {
				t.Errorf("%s: got failure %q, long %t", name, got.Failure, got.Long)
			}
		}
	}
}
