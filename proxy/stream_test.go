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
	data := strings.Repeat("QUJD", 200000)
	text := `{"bugs":{},"attachments":{"1":{"data":"` + data + `","summary":"<s>"}}}`
	base := serve(t, proxy.Options{BlobDir: t.TempDir(), Tracker: responding(func() *mapping.Document { return stream(text, nil) })})
	if response := ask(t, "GET", base+"/rest/bug/attachment/1", ""); response.status != 200 || response.body != text {
		t.Errorf("%d, %d bytes", response.status, len(response.body))
	}
	page := ask(t, "GET", base+"/rest/bug/attachment/1", "", "Accept", "text/html")
	if page.status != 200 || !strings.Contains(page.body, data) || !strings.Contains(page.body, "&lt;s&gt;") {
		t.Errorf("as a page: %d, %d bytes", page.status, len(page.body))
	}
}

func TestBrokenStreamIsCut(t *testing.T) {
	text := `{"bugs":{},"attachments":{"1":{"data":"` + strings.Repeat("QUJD", 100000) + `"}}}`
	records := make(chan proxy.Record, 10) // the HTTP client may repeat a request without a response
	var log logBuffer
	base := serve(t, proxy.Options{
		Logger:   log.logger(),
		Observer: observer(func(r proxy.Record) { records <- r }),
		Tracker:  responding(func() *mapping.Document { return stream(text, errors.New("gone")) }),
	})
	for _, coding := range []string{"gzip", "identity"} {
		request, err := http.NewRequest(http.MethodGet, base+"/rest/bug/attachment/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", coding)
		response, err := http.DefaultClient.Do(request)
		if coding == "gzip" && errors.Is(err, io.EOF) {
			continue // nothing of the compressed response was sent yet
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the client saw %v", err)
		}
		_ = response.Body.Close()
	}
	for sent := false; !sent; {
		record := <-records
		sent = record.Bytes > 0
		if record.Operation != mapping.OpAttachment || record.Reason != mapping.ReasonBadResponse {
			t.Errorf("record %+v", record)
		}
	}
	if text := log.String(); strings.Contains(text, "panicked") {
		t.Errorf("a response that breaks off is no panic: %s", text)
	}
}

type observer func(proxy.Record)

func (o observer) Finished(r proxy.Record) { o(r) }
