package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portico/proxy/admin"
)

// TestPurge forgets what was named and no more: a wish that is unclear is refused.
func TestPurge(t *testing.T) {
	var purged []string
	desk := admin.CacheDesk{Purge: func(_ context.Context, product string) error {
		purged = append(purged, product)
		return nil
	}}
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ query, kind, body, want string }{
		{"", "", "", "everything"},
		{"", form, "", "everything"},
		{"?product=P", "", "", "P"},
		{"", form, "product=P", "P"},
		{"?product=A%26B", form, "", "A&B"},
		{"?product=P", form, "product=P", ""},
		{"?product=P&product=Q", "", "", ""},
		{"?product=", "", "", ""},
		{"", form, "product=", ""},
		{"?Product=P", "", "", ""},
		{"?product=P&component=C", "", "", ""},
		{"?product=%zz", "", "", ""},
		{"", "application/json", `{"product":"P"}`, ""},
		{"?product=P", "application/json", `{"product":"Q"}`, ""},
		{"", "", "product=P", ""},
		{"", form, "product=" + strings.Repeat("x", 1<<20), ""},
	} {
		purged = nil
		request := httptest.NewRequest(http.MethodPost, "/cache/purge"+c.query, strings.NewReader(c.body))
		if c.kind != "" {
			request.Header.Set("Content-Type", c.kind)
		}
		answer := httptest.NewRecorder()
		desk.Page().Handler.ServeHTTP(answer, request)
		want, status := []string{strings.ReplaceAll(c.want, "everything", "")}, http.StatusOK
		if c.want == "" {
			want, status = nil, http.StatusBadRequest
		}
		if answer.Code != status || !slices.Equal(purged, want) {
			t.Errorf("%q with %.40q (%s) gives %d and purges %q: %s", c.query, c.body, c.kind, answer.Code, purged, answer.Body)
		}
	}
}
