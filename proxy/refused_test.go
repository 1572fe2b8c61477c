package proxy_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// fullTracker refuses all reads, and counts how it was asked.
type fullTracker struct{ asked, refused atomic.Int64 }

func (f *fullTracker) Do(context.Context, upstream.Caller, upstream.Call) (mapping.Reply, error) {
	f.asked.Add(1)
	return mapping.Reply{}, full()
}

func (f *fullTracker) Refuse(upstream.Caller, mapping.Operation) error {
	f.refused.Add(1)
	return full()
}

func full() error {
	return &mapping.Error{Code: mapping.CodeUnavailable, Status: 503, Reason: mapping.ReasonOverload, Message: "Full.", RetryAfter: time.Second}
}

// TestRefusalsTakeTheFastPath once a read was refused: they say the same and are one request each in log and metrics. What no tracker
// would be asked has its own error.
func TestRefusalsTakeTheFastPath(t *testing.T) {
	f := &fullTracker{}
	var log logBuffer
	watcher, records := finishing()
	base := serveFast(t, proxy.Options{Tracker: f, Logger: log.logger(), Observer: watcher}, time.Minute).URL
	for _, path := range []string{"/rest/bug/attachment/1", "/rest/bug/1/attachment"} {
		text := "GET " + path + "?api_key=SECRET HTTP/1.1\r\nHost: x\r\n\r\n"
		want := dial(t, base).exchange(t, text).told()
		<-records
		for end := time.Now().Add(10 * time.Second); ; { // on a busy machine net/http may get the first byte
			before := f.refused.Load()
			k := keep(t, base)
			<-records
			if got := k.exchange(t, text).told(); got != want || !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "Retry-After:[1]") {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
			if record := <-records; record.Status != 503 || record.Reason != mapping.ReasonOverload || len(records) > 0 {
				t.Errorf("recorded: %+v", record)
			}
			if f.refused.Load() > before {
				break
			}
			if time.Now().After(end) {
				t.Fatal("no refusal took the fast path")
			}
		}
	}
	refused := f.refused.Load()
	got := keep(t, base).exchange(t, "GET /rest/bug/attachment/x HTTP/1.1\r\nHost: x\r\n\r\n")
	if got.status < 400 || got.status >= 500 || f.refused.Load() != refused {
		t.Errorf("a request that is not valid: %d", got.status)
	}
	if text := log.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "reason=overload") {
		t.Errorf("the log is %s", text)
	}
}
