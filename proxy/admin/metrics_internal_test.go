package admin

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

// Every request is counted under its own labels, and their values are bounded.
func TestFinishedRequestsAreCountedByKind(t *testing.T) {
	m := NewMetrics()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 2 * maxKnown {
				m.Finished(proxy.Record{Operation: mapping.Operation(fmt.Sprint("op", n)), Status: 200, Bytes: 3})
			}
			m.Finished(proxy.Record{Operation: "op1", Status: 404, Reason: "login"})
			m.CacheRead("local")
		})
	}
	all.Wait()
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`portico_requests_total{operation="op1",reason="",status_class="2xx"} 4`,
		`portico_requests_total{operation="op1",reason="login",status_class="4xx"} 4`,
		fmt.Sprintf(`portico_requests_total{operation="other",reason="",status_class="2xx"} %d`, 4*(2*maxKnown-maxValues)),
		`portico_response_bytes_total{operation="op1"} 12`,
		`portico_cache_total{outcome="local"} 4`,
	} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if known := *m.requests.known.Load(); len(known) > maxKnown {
		t.Errorf("%d combinations are kept", len(known))
	}
}

func BenchmarkFinished(b *testing.B) {
	m := NewMetrics()
	record := proxy.Record{Operation: mapping.OpFlagTypes, Status: 200, Bytes: 2500}
	b.ReportAllocs()
	for b.Loop() {
		m.Finished(record)
		m.CacheRead("local")
	}
}
