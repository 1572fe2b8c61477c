package jsonblob

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
)

func TestJoinPlaces(t *testing.T) {
	a, b := BlobFromRaw([]byte("a")), BlobFromRaw([]byte("bb"))
	for _, c := range []struct{ skeleton, want string }{
		{`{"data":-0E+0}`, `{"data":"YQ=="}`},
		{`-0E+1`, `"YmI="`},
		{`[-0E+1,-0E+0,-0E+1]`, `["YmI=","YQ==","YmI="]`},
		{`[ -0E+1 ]`, `[ "YmI=" ]`},
		{`["-0E+0","\\","\"-0E+1",-0E+0]`, `["-0E+0","\\","\"-0E+1","YQ=="]`},
		{`[-0e+0,-0E0,-0E+00,-0E+0.5,-0E+0e1,-1]`, `[-0e+0,-0E0,-0E+00,-0E+0.5,-0E+0e1,-1]`},
		{`{}`, `{}`},
		{``, ``},
		{`"`, `"`},
		{`"\`, `"\`},
	} {
		if got := rejoin(t, []byte(c.skeleton), []*Blob{a, b}); got != c.want {
			t.Errorf("Join(%s) = %s, want %s", c.skeleton, got, c.want)
		}
	}
	for _, skeleton := range []string{`[-0E+2]`, `[-0E+3]`, `{"data":-0E+999999}`} {
		if joined, err := Join([]byte(skeleton), []*Blob{a, b, nil}); err == nil {
			t.Errorf("Join(%s) made %d bytes", skeleton, joined.Len())
		}
	}
}

func TestJoinReadsInAnySteps(t *testing.T) {
	text := `[{"data":"QUJD"},{"data":""},{"data":"` + strings.Repeat("QUJD", 5000) + `"}]`
	for _, memory := range []int64{0, -1} {
		skeleton, blobs := mustSplit(t, text, SplitOptions{Limits: Limits{BlobMemory: memory}})
		joined, err := Join(skeleton, blobs)
		must(t, err)
		if err := iotest.TestReader(struct{ io.Reader }{joined.Open()}, []byte(text)); err != nil {
			t.Error(err)
		}
		for _, first := range []int{0, 1, 10, 11, 20, 30, 1000} { // Read a little, WriteTo the rest
			body := joined.Open()
			var got strings.Builder
			if _, err := io.CopyN(&got, body, int64(first)); err != nil {
				t.Fatal(err)
			}
			if n, err := body.(io.WriterTo).WriteTo(&got); err != nil || got.String() != text || n != int64(len(text)-first) {
				t.Errorf("after %d bytes: %d more, %v", first, n, err)
			}
		}
	}
}

func TestJoinStopsWhenBlobIsClosed(t *testing.T) {
	skeleton, blobs := mustSplit(t, `{"data":"`+strings.Repeat("QUJD", 50000)+`"}`, SplitOptions{})
	joined, err := Join(skeleton, blobs)
	must(t, err)
	body := joined.Open()
	if _, err := io.CopyN(io.Discard, body, 1000); err != nil {
		t.Fatal(err)
	}
	_ = blobs[0].Close()
	if _, err := io.Copy(io.Discard, body); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("copy: %v", err)
	}
	if _, err := joined.WriteTo(io.Discard); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("WriteTo: %v", err)
	}
}

func TestAppendBlobKeepsPlaces(t *testing.T) {
	skeleton, blobs := mustSplit(t, `[{"data":"QQ=="},{"data":"Qg==","x":{"data":"Qw=="}}]`, SplitOptions{})
	var items []map[string]json.RawMessage
	must(t, json.Unmarshal(skeleton, &items))
	second, ok := BlobAt(items[1]["data"], blobs)
	if !ok || second != blobs[1] {
		t.Fatalf("BlobAt(%s) = %v, %v", items[1]["data"], second, ok)
	}
	for _, raw := range []string{`null`, `"x"`, `-0E+3`, `-0E+`, `-0E+0 1`, `-0e+0`, ``, `{}`} {
		if b, ok := BlobAt([]byte(raw), blobs); ok {
			t.Errorf("BlobAt(%s) = %v", raw, b)
		}
	}
	extra := BlobFromRaw([]byte("new"))
	list := blobs
	out := AppendBlob([]byte(`{"a":`), extra, &list)
	out = AppendBlob(append(out, `,"b":`...), second, &list)
	out = AppendBlob(append(out, `,"c":`...), nil, &list)
	out = AppendBlob(append(out, `,"d":`...), extra, &list)
	out = append(append(append(out, `,"x":`...), items[1]["x"]...), '}')
	if got, want := rejoin(t, out, list), `{"a":"bmV3","b":"Qg==","c":null,"d":"bmV3","x":{"data":"Qw=="}}`; got != want {
		t.Errorf("joined %s, want %s", got, want)
	}
	if len(list) != len(blobs)+1 {
		t.Errorf("%d blobs in the list, and %d in the one before", len(list), len(blobs))
	}
}

// TestPlaceholdersOutliveCodecs: values kept as text go through the JSON packages in use unharmed.
func TestPlaceholdersOutliveCodecs(t *testing.T) {
	text := `{"x":{"data":"QQ==","n":1.50}}`
	skeleton, blobs := mustSplit(t, text, SplitOptions{})
	var raw map[string]json.RawMessage
	must(t, json.Unmarshal(skeleton, &raw))
	again, err := json.Marshal(raw)
	must(t, err)
	if got := rejoin(t, again, blobs); got != text {
		t.Errorf("encoding/json: %s", got)
	}
	var out strings.Builder
	e, d := jsontext.NewEncoder(&out), jsontext.NewDecoder(strings.NewReader(string(skeleton)))
	value, err := d.ReadValue()
	must(t, err)
	must(t, e.WriteValue(value))
	if got := rejoin(t, []byte(strings.TrimSpace(out.String())), blobs); got != text {
		t.Errorf("jsontext: %s", got)
	}
}

func TestJoinedIsAnHTTPBody(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 1<<16)
	var lengths []int64
	var digests [][32]byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, blobs, err := Split(nil, r.Body, SplitOptions{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer CloseBlobs(blobs)
		lengths, digests = append(lengths, r.ContentLength), append(digests, digestOf(t, blobs[0]))
		if len(lengths) == 1 {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect) // makes the client send the body again
		}
	}))
	defer server.Close()
	var blobs []*Blob
	skeleton := append(AppendBlob([]byte(`{"data":`), BlobFromRaw([]byte(content)), &blobs), '}')
	joined, err := Join(skeleton, blobs)
	must(t, err)
	request, err := http.NewRequest(http.MethodPost, server.URL, joined.Open())
	must(t, err)
	request.ContentLength = joined.Len()
	request.GetBody = func() (io.ReadCloser, error) { return joined.Open(), nil }
	response, err := server.Client().Do(request)
	must(t, err)
	_ = response.Body.Close()
	want := sha256.Sum256([]byte(content))
	if response.StatusCode != http.StatusOK || len(lengths) != 2 || lengths[0] != joined.Len() || lengths[1] != joined.Len() ||
		digests[0] != want || digests[1] != want {
		t.Errorf("status %d, lengths %v, digests %x", response.StatusCode, lengths, digests)
	}
}
