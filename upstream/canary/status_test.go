package canary_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// withStatus sends all answers with another status.
func withStatus(status int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := httptest.NewRecorder()
			next.ServeHTTP(said, r)
			maps.Copy(w.Header(), said.Header())
			w.WriteHeader(status)
			_, _ = w.Write(said.Body.Bytes())
		})
	}
}

// TestOtherStatus: the status is compared as the tracker sends it, also where Portico's clients get the same for both.
func TestOtherStatus(t *testing.T) {
	for name, test := range map[string]struct {
		status, oldStatus int
		product           string
		found             []string
	}{
		"success":      {202, 200, "TestProduct", []string{"flag_type.get status status"}},
		"error":        {200, 404, "NoSuchProduct", []string{"flag_type.get status status"}},
		"both success": {203, 203, "TestProduct", nil},
		"both error":   {200, 200, "NoSuchProduct", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{around: withStatus(test.status), aroundOld: withStatus(test.oldStatus)})
			w.make(flagTypes(test.product))
			if found := w.findings(); !slices.Equal(found, test.found) {
				t.Errorf("found %q, want %q", found, test.found)
			}
			if sum := w.sum(""); sum.Transient > 0 {
				t.Errorf("%d were in passing", sum.Transient)
			}
		})
	}
}
