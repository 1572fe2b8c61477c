package tracker_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/tracker"
)

// TestJournal: one entry for each executed write, none for a refused one, and no credentials in it.
func TestJournal(t *testing.T) {
	f := start(t, tracker.Options{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }})
	f.must("POST", "/rest/flag_type?"+editorKey, `{"name":"j","description":"d"}`, "X-Request-Id: r-1")
	f.must("POST", "/rest/flag_type?"+editorKey, `{"name":"bad name","description":"d"}`)
	f.must("POST", "/rest/flag_type?"+editorKey, `{"name":"j2","description":"d","inclusions":{}}`)
	f.must("PUT", "/rest/bug/attachment/12?"+devKey, `{"ids":[12,5],"summary":"x"}`)
	f.must("GET", "/rest/login?login=dev@example.com&password=password1", "")
	a := f.must("GET", "/_tracker/journal", "")
	entries := f.Journal()
	if len(entries) != 2 {
		t.Fatalf("%d entries: %s", len(entries), a.raw)
	}
	first := entries[0]
	if first.ID != 1 || first.Operation != "flag_type.create" || first.User != "editor@example.com" || first.RequestID != "r-1" || fmt.Sprint(first.IDs) != "[19]" ||
		first.Time.Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
		t.Errorf("got %+v", first)
	}
	if second := entries[1]; second.Operation != "attachment.update" || fmt.Sprint(second.IDs) != "[12 5]" {
		t.Errorf("got %+v", second)
	}
	a.want(t, "flag_type.create", "journal", 0, "op")
	for _, secret := range []string{"Key", "password"} {
		if strings.Contains(a.raw, secret) {
			t.Errorf("%q in %s", secret, a.raw)
		}
	}
	f.must("GET", "/_tracker/requests", "").want(t, "3", "requests", "flag_type.create")
	f.must("POST", "/_tracker/reset", "")
	if len(f.Journal()) != 0 {
		t.Error("the journal outlived the reset")
	}
	f.must("POST", "/rest/flag_type?"+editorKey, `{"name":"j","description":"d"}`).want(t, "19", "id")
}

// TestAtomicity: readers never see half of a write of two attachments, and no write is lost among many.
func TestAtomicity(t *testing.T) {
	f := start(t, tracker.Options{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20 {
				f.must("PUT", "/rest/bug/attachment/12?"+devKey, fmt.Sprintf(`{"ids":[12,5],"summary":"%d-%d"}`, w, i))
			}
		})
		wg.Go(func() {
			for range 20 {
				a := f.must("GET", "/rest/bug/attachment/12?attachment_ids=5&include_fields=summary", "")
				x, y := a.at(t, "attachments", "12", "summary"), a.at(t, "attachments", "5", "summary")
				if x != y && x != "on bug three" {
					t.Errorf("half of a write: %v and %v", x, y)
				}
			}
		})
	}
	wg.Wait()
	if n := len(f.Journal()); n != 80 {
		t.Errorf("%d writes in the journal, want 80", n)
	}
}

// TestTimeOfTheLastChange: the same attachment twice in one request keeps the time of the change that was made.
func TestTimeOfTheLastChange(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	f := start(t, tracker.Options{Now: func() time.Time { return now }})
	f.must("PUT", "/rest/bug/attachment/12?"+devKey, `{"ids":[12,12],"summary":"x"}`)
	f.must("GET", "/rest/bug/attachment/12", "").want(t, "2030-01-01T00:00:00Z", "attachments", "12", "last_change_time")
}

// TestFramingOfBMO: every dynamic response ends with the connection and has no length.
func TestFramingOfBMO(t *testing.T) {
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO})
	req, err := http.NewRequestWithContext(t.Context(), "PUT", f.url+"/rest/bug/attachment/1?"+devKey, struct{ io.Reader }{strings.NewReader(`{"summary":"chunked"}`)})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !resp.Close || resp.ContentLength != -1 || len(resp.TransferEncoding) > 0 || !strings.Contains(string(body), "chunked") {
		t.Errorf("%v, close %v, length %d, %v: %s", err, resp.Close, resp.ContentLength, resp.TransferEncoding, body)
	}
}
