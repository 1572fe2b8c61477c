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

// TestFaultsBefore: something else is answered, and nothing is executed.
func TestFaultsBefore(t *testing.T) {
	check := func(kind string, see func(answer, error)) {
		t.Run(kind, func(t *testing.T) {
			f := faulty(t, "op=attachment.create,kind="+kind)
			see(f.do("POST", create, patch))
			if n := f.made(); n != 0 {
				t.Errorf("%d attachments were made", n)
			}
			if len(f.Journal()) != 0 {
				t.Error("the journal has an entry")
			}
		})
	}
	page := func(status int) func(answer, error) {
		return func(a answer, err error) {
			if err != nil || a.status != status || !strings.Contains(a.raw, "<html") {
				t.Errorf("%v %d %s", err, a.status, a.raw)
			}
		}
	}
	check("error500", page(500))
	check("html200", page(200))
	check("empty200", func(a answer, err error) {
		if err != nil || a.status != 200 || a.raw != "" || a.header.Get("Content-Type") != "" {
			t.Errorf("%v %d %v", err, a.status, a.header)
		}
	})
	check("100500-with-201", func(a answer, err error) {
		if err != nil {
			t.Fatal(err)
		}
		a.fails(t, 201, "100500")
	})
	check("reset-before", func(_ answer, err error) {
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
	})
	check("bad-status", func(_ answer, err error) {
		if err == nil {
			t.Error("the status line was taken")
		}
	})
}

// TestFaultsAfter: the operation is executed and its answer spoiled.
func TestFaultsAfter(t *testing.T) {
	check := func(kind string, see func(answer, error)) {
		t.Run(kind, func(t *testing.T) {
			f := faulty(t, "op=attachment.create,kind="+kind)
			see(f.do("POST", create, patch))
			if n := f.made(); n != 1 {
				t.Errorf("%d attachments were made", n)
			}
			if len(f.Journal()) != 1 {
				t.Errorf("the journal has %d entries", len(f.Journal()))
			}
		})
	}
	broken := func(_ answer, err error) {
		if err == nil {
			t.Error("the answer came through")
		}
	}
	for _, kind := range []string{"reset-after-headers", "reset-mid-body", "wrong-length", "close-after-commit", "endless-headers"} {
		check(kind, broken)
	}
	check("truncate-json", func(a answer, err error) {
		if err != nil || a.status != 201 || a.body != nil {
			t.Errorf("%v %d %s", err, a.status, a.raw)
		}
	})
	check("gzip-lie", func(a answer, err error) {
		if err == nil {
			t.Errorf("the client unpacked %s", a.raw)
		}
	})
	check("wrong-content-type", func(a answer, err error) {
		if err != nil || a.header.Get("Content-Type") != "text/plain" {
			t.Errorf("%v %v", err, a.header)
		}
		a.want(t, "16", "ids", 0)
	})
	check("slow,delay=20ms", func(a answer, err error) {
		if err != nil || a.status != 201 {
			t.Errorf("%v %d", err, a.status)
		}
	})
	check("drip,delay=1ms", func(a answer, err error) {
		if err != nil {
			t.Fatal(err)
		}
		a.want(t, "16", "ids", 0)
	})
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
