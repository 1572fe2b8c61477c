package transport

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestChainCarriesReadsAndWrites(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+string(body))
	})
	var seen recorder
	stack := newStack(t, Options{Observer: &seen})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		ctx := WithOperation(t.Context(), "op")
		req, err := http.NewRequestWithContext(ctx, method, tr.url, strings.NewReader("sent"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := stack.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := slurp(t, resp); got != method+" sent" {
			t.Errorf("answer %q", got)
		}
		s := seen.last(t)
		if s.Operation != "op" || s.Method != method || s.Status != 200 || s.Tries != 1 || s.BytesOut != 4 ||
			s.BytesIn != int64(len(method)+5) || s.Reason != "" || s.Total < s.Headers || s.Headers <= 0 {
			t.Errorf("sample %+v", s)
		}
	}
	if n := stack.Limiter.Load().InUse; n != 0 {
		t.Errorf("%d slots held after the end", n)
	}
}

func TestChainRefusesImpossibleOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"base":  {Base: BaseOptions{DialTimeout: -1}},
		"retry": {Retry: RetryOptions{Share: 2}},
		"limit": {Limit: LimitOptions{Slots: 4, ReserveWrites: 2, ReserveReads: 2}},
		"break": {Break: BreakOptions{Jitter: 1}},
		"open":  {Break: BreakOptions{OpenFor: 2, OpenMax: 1}},
	} {
		if _, err := Chain(nil, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}
