package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portico/cache"
	"portico/proxy/admin"
)

// fakeCaches is a CacheView.
type fakeCaches struct {
	away  error
	purge func(product string) error
}

func (fakeCaches) Lookup(_ context.Context, product, component string) ([]cache.Item, error) {
	return []cache.Item{{Product: product, Component: component}}, nil
}

func (f fakeCaches) LookupKey(context.Context, string) ([]cache.Item, error) { return nil, f.away }

func (f fakeCaches) Purge(_ context.Context, product string) error { return f.purge(product) }

// TestPurge checks that exactly the named items are purged, and that an unclear request is refused.
func TestPurge(t *testing.T) {
	var purged []string
	view := fakeCaches{purge: func(product string) error {
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
		response := httptest.NewRecorder()
		admin.CachePage(view).Handler.ServeHTTP(response, request)
		want, status := []string{strings.ReplaceAll(c.want, "everything", "")}, http.StatusOK
		if c.want == "" {
			want, status = nil, http.StatusBadRequest
		}
		if response.Code != status || !slices.Equal(purged, want) {
			t.Errorf("%q with %.40q (%s) gives %d and purges %q: %s", c.query, c.body, c.kind, response.Code, purged, response.Body)
		}
	}
}

// TestMethodsOfTheCache checks the methods that each path takes, and the Allow header of other ones.
func TestMethodsOfTheCache(t *testing.T) {
	view := fakeCaches{}
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
		response := httptest.NewRecorder()
		admin.CachePage(view).Handler.ServeHTTP(response, httptest.NewRequest(c.method, c.path, nil))
		if response.Code != c.status || response.Header().Get("Allow") != c.takes {
			t.Errorf("%s %s: %d %q", c.method, c.path, response.Code, response.Header().Get("Allow"))
		}
	}
}

// TestLookupInTheCache checks that a lookup is for what the query names, and that an error of the cache is no empty list.
func TestLookupInTheCache(t *testing.T) {
	away := errors.New("Redis is away")
	view := fakeCaches{away: away, purge: func(string) error { return away }}
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{http.MethodGet, "/cache?product=P&component=C", http.StatusOK, `"component": "C"`},
		{http.MethodGet, "/cache?key=K", http.StatusBadGateway, away.Error()},
		{http.MethodPost, "/cache/purge", http.StatusBadGateway, away.Error()},
	} {
		response := httptest.NewRecorder()
		admin.CachePage(view).Handler.ServeHTTP(response, httptest.NewRequest(c.method, c.path, nil))
		if response.Code != c.status || !strings.Contains(response.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, response.Code, response.Body)
		}
	}
}
