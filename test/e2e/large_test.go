package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

// block is the piece that large attachments repeat. Its length is a multiple of three, so its base64 repeats too.
func block() []byte {
	b := make([]byte, 48<<10)
	for i := range b {
		b[i] = byte(i * 31 >> 3)
	}
	return b
}

// blocks make an attachment of 32 MB.
const blocks = 32<<20/(48<<10) + 1

// sendLarge sends a body that holds the attachment between two texts, and gives the answer.
func (c *client) sendLarge(t testing.TB, path, kind string, chunked bool, before string, content []byte, after string) *reply {
	t.Helper()
	parts := []io.Reader{strings.NewReader(before)}
	for range blocks {
		parts = append(parts, bytes.NewReader(content))
	}
	body := io.MultiReader(append(parts, strings.NewReader(after))...)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+path, body)
	must(t, err)
	request.Header.Set("Content-Type", kind)
	if !chunked {
		request.ContentLength = int64(len(before) + len(content)*blocks + len(after))
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return &reply{ask: ask{method: http.MethodPost, path: path}, status: response.StatusCode, header: response.Header, body: text}
}

// takeLarge reads an answer that holds the attachment between prefix and whatever follows, without keeping it.
func (c *client) takeLarge(t testing.TB, path, prefix string, content []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	body := bufio.NewReaderSize(response.Body, 256<<10)
	if err := skipTo(body, prefix); err != nil {
		t.Fatalf("%s: status %d: %v", path, response.StatusCode, err)
	}
	piece := make([]byte, len(content))
	for i := range blocks {
		if _, err := io.ReadFull(body, piece); err != nil || !bytes.Equal(piece, content) {
			t.Fatalf("%s: piece %d of %d is not what was sent (%v)", path, i, blocks, err)
		}
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// skipTo reads up to the end of a text.
func skipTo(r *bufio.Reader, text string) error {
	matched := 0
	for matched < len(text) {
		c, err := r.ReadByte()
		if err != nil {
			return fmt.Errorf("look for %s: %w", text, err)
		}
		switch {
		case c == text[matched]:
			matched++
		case c == text[0]:
			matched = 1
		default:
			matched = 0
		}
	}
	return nil
}

// metric reads one of Portico's own metrics.
func (f *facade) metric(t testing.TB, name string) float64 {
	t.Helper()
	value, err := f.operators.gauge(t.Context(), name)
	must(t, err)
	return value
}

func (c *client) gauge(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// growth watches the heap of Portico while something runs, and gives in MB by how much it grew at most: as sampled, and as the
// memory that was ever mapped for it.
func (f *facade) growth(t testing.TB, run func()) (sampled, mapped float64) {
	t.Helper()
	inUse, sys := f.metric(t, "go_memstats_heap_inuse_bytes"), f.metric(t, "go_memstats_heap_sys_bytes")
	ctx, stop := context.WithCancel(t.Context())
	peak := make(chan float64)
	go func() {
		most, tick := inUse, time.NewTicker(50*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				peak <- most
				return
			case <-tick.C:
				if now, err := f.operators.gauge(ctx, "go_memstats_heap_inuse_bytes"); err == nil {
					most = max(most, now)
				}
			}
		}
	}()
	defer func() {
		stop()
		sampled = (<-peak - inUse) / (1 << 20)
		mapped = (f.metric(t, "go_memstats_heap_sys_bytes") - sys) / (1 << 20)
	}()
	run()
	return 0, 0
}

// TestLargeAttachmentsPassWithoutTheHeap sends attachments up in each way that there is, and takes them down in each: as the tracker's
// response, and as one whose booleans Portico translates.
func TestLargeAttachmentsPassWithoutTheHeap(t *testing.T) {
	t.Parallel()
	_, base := startTracker(t, process.FreeAddress(t), "--max-attachment", "60000")
	plain, encoded := block(), []byte(base64.StdEncoding.EncodeToString(block()))
	without := func(f *facade, run func()) {
		t.Helper()
		f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200)
		sampled, mapped := f.growth(t, run)
		t.Logf("the heap grew by %.1f MB as sampled, by %.1f MB as mapped", sampled, mapped)
		if sampled >= 20 || mapped >= 20 {
			t.Errorf("the heap grew by %.1f MB as sampled, by %.1f MB as mapped, 20 MB are allowed", sampled, mapped)
		}
		left, err := os.ReadDir(f.Dir)
		if err != nil || len(left) != 0 {
			t.Errorf("files are left behind: %v (%v)", left, err)
		}
	}
	f := startFacade(t, base)
	one := ""
	without(f, func() {
		id := uploadLarge(t, f, encoded)
		one = "/rest/bug/attachment/" + id
		f.takeLarge(t, one, `"data":"`, encoded)
		f.takeLarge(t, "/attachment.cgi?id="+id, "", plain)
		f.get(t, "", one+"?include_fields=size").ok(t, 200).want(t, fmt.Sprintf("attachments.%s.size=%d", id, len(plain)*blocks))
	})
	f = startFacade(t, base, "RESPONSES=interface")
	without(f, func() {
		f.takeLarge(t, one, `"data":"`, encoded)
		f.takeLarge(t, "/rest/bug/8/attachment", `"data":"`, encoded)
	})
}

// uploadLarge sends an attachment in each way that there is, and gives the id of the first one.
func uploadLarge(t testing.TB, f *facade, encoded []byte) (id string) {
	t.Helper()
	before := `{"Bugzilla_api_key":"` + f.keys["dev"] + `","file_name":"large.bin","content_type":"application/octet-stream","summary":"large","data":"`
	made := f.sendLarge(t, "/rest/bug/7/attachment", "application/json", false, before, encoded, `"}`).ok(t, 201)
	f.sendLarge(t, "/rest/bug/7/attachment", "application/json", true, before, encoded, `"}`).ok(t, 201)
	form := "Bugzilla_api_key=" + f.keys["dev"] + "&file_name=large.bin&content_type=text/plain&summary=large&data="
	f.sendLarge(t, "/rest/bug/7/attachment", typeForm, false, form, encoded, "").ok(t, 201)
	called, after, _ := strings.Cut(xmlCall("Bug.add_attachment", xmlText("Bugzilla_api_key", f.keys["dev"])+xmlIDs("ids", 8)+xmlText("file_name", "large")+
		xmlText("summary", "large")+xmlText("content_type", "text/plain")+xmlMember("data", "<base64>DATA</base64>")), "DATA")
	xml := f.sendLarge(t, "/xmlrpc.cgi", "text/xml", false, called, encoded, after)
	if xml.status != 200 || !bytes.Contains(xml.body, []byte("<int>")) {
		t.Fatalf("by XML-RPC: status %d: %.300s", xml.status, xml.body)
	}
	return made.value(t, "ids.0")
}
