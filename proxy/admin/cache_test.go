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

// TestMethodsOfTheCache sees that who only looks may ask without a body, and that what a path takes is said.
func TestMethodsOfTheCache(t *testing.T) {
	desk := admin.CacheDesk{Product: func(context.Context, string, string) ([]admin.CacheItem, error) { return nil, nil }}
	for _, c := range []struct {
		method, path string
		status       int
		takes        string
	}{
		{http.MethodHead, "/cache?product=P", http.StatusOK, ""},
		{http.MethodPost, "/cache", http.StatusMethodNotAllowed, "GET, HEAD"},
		{http.MethodGet, "/cache/purge", http.StatusMethodNotAllowed, "POST"},
		{http.MethodGet, "/cache/nothing", http.StatusNotFound, ""},
	} {
		answer := httptest.NewRecorder()
		desk.Page().Handler.ServeHTTP(answer, httptest.NewRequest(c.method, c.path, nil))
		if answer.Code != c.status || answer.Header().Get("Allow") != c.takes {
			t.Errorf("%s %s: %d %q", c.method, c.path, answer.Code, answer.Header().Get("Allow"))
		}
	}
}
