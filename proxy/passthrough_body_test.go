package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"portico/proxy"
)

func TestPassthroughGivesChunkedBodiesALength(t *testing.T) {
	dir := t.TempDir()
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.BlobDir, o.Limits.BlobMemory, o.Limits.Body = dir, 100, 100000
	})
	for _, path := range []string{"/rest/bug", "/jsonrpc.cgi"} {
		for _, size := range []int{0, 99, 100, 101, 70000} {
			body := strings.Repeat("b", size)
			request, err := http.NewRequest("POST", base+path, struct{ io.Reader }{strings.NewReader(body)})
			if err != nil {
				t.Fatal(err)
			}
			send(t, request).wantStatus(t, 200)
			if tracker.body != body || tracker.last.ContentLength != int64(size) || len(tracker.last.TransferEncoding) != 0 {
				t.Errorf("%s, %d bytes: %d bytes arrived with length %d", path, size, len(tracker.body), tracker.last.ContentLength)
			}
		}
	}
	// A client that sends more than twice the limit may be cut off before it has the response.
	for _, length := range []int64{-1, 150000} {
		request, err := http.NewRequest("POST", base+"/rest/bug", strings.NewReader(strings.Repeat("b", 150000)))
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = length
		send(t, request).wantError(t, 413, "200413")
	}
	files, err := filesIn(dir)
	if err != nil || len(files) != 0 {
		t.Errorf("left behind: %v %v", files, err)
	}
}

func TestPassthroughStreams(t *testing.T) {
	more := make(chan struct{})
	tracker, base := behind(t, "", nil)
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, "second")
	}
	response, err := http.Get(base + "/buglist.cgi")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	head := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, head); err != nil || string(head) != "first" {
		t.Fatalf("%s %v", head, err)
	}
	close(more)
	rest, err := io.ReadAll(response.Body)
	if err != nil || string(rest) != "second" {
		t.Errorf("%s %v", rest, err)
	}
}

func TestBrokenPassthroughIsCut(t *testing.T) {
	tracker, base := behind(t, "", nil)
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, strings.Repeat("x", 50000))
	}
	response, err := http.Get(base + "/attachment.cgi?id=1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the client took %q for all", text)
	}
}

func TestClientOfPassthroughHangsUp(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	watcher, records := finishing()
	_, base := behind(t, "", func(o *proxy.Options) {
		o.Observer = watcher
		o.Passthrough.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			close(begun)
			<-r.Context().Done()
			close(ended)
			return nil, r.Context().Err()
		})
	})
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(connection, "POST /xmlrpc.cgi HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
	<-begun
	connection.Close()
	<-ended
	if got := <-records; got.Status != proxy.StatusClientGone || got.Operation != proxy.OpPassthrough {
		t.Errorf("record %+v", got)
	}
}

// While a client is still sending, no tracker is asked: it would hold one of the tracker's few slots. The interim response tells
// that Portico has begun to read.
func TestPassthroughUploadIsReadBeforeTheTrackerIsAsked(t *testing.T) {
	const size = 3 * spoolMemory
	asked, arrived := make(chan struct{}, 1), make(chan string, 1)
	_, base := behind(t, "", func(o *proxy.Options) {
		o.BlobDir = t.TempDir()
		o.Passthrough.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			asked <- struct{}{}
			text, err := io.ReadAll(r.Body)
			arrived <- string(text)
			return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, err
		})
	})
	client := dial(t, base)
	fmt.Fprintf(client, "POST /attachment.cgi HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
	if line, err := client.reader.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := client.reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 0 {
		t.Error("the tracker was asked before the body was here")
	}
	body := strings.Repeat("b", size)
	_, _ = io.WriteString(client, body)
	client.response(t).wantStatus(t, 200)
	if got := <-arrived; got != body {
		t.Errorf("%d bytes arrived", len(got))
	}
}

// A large body lies in a file that has lost its name, so that nothing of it stays when the process is killed.
func TestStoredBodyHasNoName(t *testing.T) {
	dir, seen := t.TempDir(), -1
	_, base := behind(t, "", func(o *proxy.Options) {
		o.BlobDir = dir
		o.Passthrough.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			files, err := filesIn(dir)
			seen = len(files)
			return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, err
		})
	})
	request, err := http.NewRequest("POST", base+"/attachment.cgi", struct{ io.Reader }{strings.NewReader(strings.Repeat("b", 8*spoolMemory))})
	if err != nil {
		t.Fatal(err)
	}
	send(t, request).wantStatus(t, 200)
	if seen != 0 {
		t.Errorf("%d files while the tracker was asked", seen)
	}
}

// Where a body cannot be stored, the client gets Retry-After.
func TestBodyThatCannotBeStored(t *testing.T) {
	_, base := behind(t, "", func(o *proxy.Options) { o.BlobDir = filepath.Join(t.TempDir(), "none") })
	ask(t, "POST", base+"/attachment.cgi", strings.Repeat("b", 3*spoolMemory)).wantError(t, 503, "200503")
}

// spoolMemory is above the size from which bodies lie in files.
const spoolMemory = 64 << 10
