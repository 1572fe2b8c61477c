package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

func TestPageOfALargeStream(t *testing.T) {
	text := `{"bugs":{},"attachments":{"1":{"data":"` + strings.Repeat("QUJD", 200000) + `","summary":"<s>"}}}`
	base := serve(t, proxy.Options{BlobDir: t.TempDir(), Tracker: answering(func() *mapping.Document { return stream(text, nil) })})
	answer := ask(t, "GET", base+"/rest/bug/attachment/1", "", "Accept", "text/html")
	if answer.status != 200 || !strings.Contains(answer.body, strings.Repeat("QUJD", 200000)) || !strings.Contains(answer.body, "&lt;s&gt;") {
		t.Errorf("%d, %d bytes", answer.status, len(answer.body))
	}
}

// stream is a document that arrives in pieces; err is what comes instead of its end.
func stream(text string, err error) *mapping.Document {
	rest := io.Reader(strings.NewReader(text[10:]))
	if err != nil {
		rest = io.MultiReader(rest, brokenReader{err})
	}
	return mapping.NewStream([]byte(text[:10]), io.NopCloser(rest), -1)
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestStreams(t *testing.T) {
	text := `{"bugs":{},"attachments":{"1":{"data":"` + strings.Repeat("QUJD", 100000) + `"}}}`
	base := serve(t, proxy.Options{Tracker: answering(func() *mapping.Document { return stream(text, nil) })})
	answer := ask(t, "GET", base+"/rest/bug/attachment/1", "")
	if answer.status != 200 || answer.body != text {
		t.Errorf("%d, %d bytes", answer.status, len(answer.body))
	}
}

func TestBrokenStreamIsCut(t *testing.T) {
	text := `{"bugs":{},"attachments":{"1":{"data":"` + strings.Repeat("QUJD", 100000) + `"}}}`
	var finished proxy.Record
	base := serve(t, proxy.Options{
		Observer: observer(func(r proxy.Record) { finished = r }),
		Tracker:  answering(func() *mapping.Document { return stream(text, errors.New("gone")) }),
	})
	response, err := http.Get(base + "/rest/bug/attachment/1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client saw %v", err)
	}
	if finished.Bytes == 0 || finished.Operation != mapping.OpAttachment || finished.Reason != mapping.ReasonBadAnswer {
		t.Errorf("record %+v", finished)
	}
}

type observer func(proxy.Record)

func (o observer) Finished(r proxy.Record) { o(r) }
