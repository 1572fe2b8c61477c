package tracker_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/test/tracker"
)

func faulty(t *testing.T, fault string) front {
	t.Helper()
	f, err := tracker.ParseFault(fault)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, tracker.Options{Faults: []tracker.Fault{f}})
}

const create = "/rest/bug/7/attachment?" + devKey

// made counts the attachments of bug 7, which tells whether a create was executed.
func (f front) made() int {
	f.t.Helper()
	f.SetFaults(nil)
	return len(f.must("GET", "/rest/bug/7/attachment", "").at(f.t, "bugs", "7").([]any))
}

// TestFaultKinds: before the operation something else is answered and nothing is executed; after it the response is spoiled.
func TestFaultKinds(t *testing.T) {
	broken := func(_ answer, err error) bool { return err != nil }
	page := func(status int) func(answer, error) bool {
		return func(a answer, err error) bool {
			return err == nil && a.status == status && strings.Contains(a.raw, "<html")
		}
	}
	created := func(a answer, err error) bool {
		return err == nil && a.status == 201 && strings.Contains(a.raw, `"ids":[16]`)
	}
	for _, c := range []struct {
		kind string
		made int
		seen func(answer, error) bool
	}{
		{"error500", 0, page(500)},
		{"html200", 0, page(200)},
		{"empty200", 0, func(a answer, err error) bool {
			return err == nil && a.status == 200 && a.raw == "" && a.header.Get("Content-Type") == ""
		}},
		{"100500-with-201", 0, func(a answer, err error) bool {
			return err == nil && a.status == 201 && strings.Contains(a.raw, "100500")
		}},
		{"reset-before", 0, func(_ answer, err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{"bad-status", 0, broken},
		{"reset-after-headers", 1, broken}, {"reset-mid-body", 1, broken}, {"wrong-length", 1, broken}, {"close-after-commit", 1, broken},
		{"endless-headers", 1, broken}, {"gzip-lie", 1, broken},
		{"truncate-json", 1, func(a answer, err error) bool { return err == nil && a.status == 201 && a.body == nil }},
		{"wrong-content-type", 1, func(a answer, err error) bool { return created(a, err) && a.header.Get("Content-Type") == "text/plain" }},
		{"slow,delay=20ms", 1, created},
		{"drip,delay=1ms", 1, created},
	} {
		t.Run(c.kind, func(t *testing.T) {
			f := faulty(t, "op=attachment.create,kind="+c.kind)
			if a, err := f.do("POST", create, patch); !c.seen(a, err) {
				t.Errorf("%v %d %v %s", err, a.status, a.header, a.raw)
			}
			if made, entries := f.made(), len(f.Journal()); made != c.made || entries != c.made {
				t.Errorf("%d attachments were made, and the journal has %d entries", made, entries)
			}
		})
	}
}

// TestHanging: nothing comes until the client gives up; the server does not wait on.
func TestHanging(t *testing.T) {
	for _, kind := range []string{"hang-before", "hang-after-headers"} {
		t.Run(kind, func(t *testing.T) {
			f := faulty(t, "kind="+kind)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", f.url+create, strings.NewReader(patch))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestWhichRequestFails: by operation, by number and by chance.
func TestWhichRequestFails(t *testing.T) {
	f := faulty(t, "op=flag_type.get,kind=error500,nth=2")
	var got []int
	for range 3 {
		got = append(got, f.must("GET", "/rest/flag_type/TestProduct", "").status, f.must("GET", "/rest/version", "").status)
	}
	for i, want := range []int{200, 200, 500, 200, 200, 200} {
		if got[i] != want {
			t.Errorf("answer %d is %d, want %d", i, got[i], want)
		}
	}
	f = faulty(t, "op=flag_type.*,kind=error500,percent=50")
	failed := 0
	for range 200 {
		if f.must("GET", "/rest/flag_type/TestProduct", "").status == 500 {
			failed++
		}
	}
	if failed < 50 || failed > 150 {
		t.Errorf("%d of 200 failed, want about half", failed)
	}
	if f.must("GET", "/rest/bug/1", "").status != 200 {
		t.Error("another operation failed")
	}
	rpc := faulty(t, "op=flag_type.get,kind=error500")
	if a := rpc.must("POST", "/jsonrpc.cgi", `{"method":"FlagType.get","params":[{"product":"4242"}],"id":1}`); a.status != 500 {
		t.Errorf("the same operation by JSON-RPC got %d", a.status)
	}
}
