package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"portico/cache"
)

// CacheView gives operators access to the caches. It is implemented by cache.Caches, which bounds its calls of Redis.
type CacheView interface {
	// Lookup lists the items of a product, or of one of its components.
	Lookup(ctx context.Context, product, component string) ([]cache.Item, error)
	// LookupKey lists the item with a key, if there is one.
	LookupKey(ctx context.Context, key string) ([]cache.Item, error)
	// Purge removes the items of a product, or all items when product is empty.
	Purge(ctx context.Context, product string) error
}

// CachePage returns the JSON API at /cache: GET ?product=P&component=C or ?key=K lists. POST to /cache/purge purges the product P of
// product=P in the query or in a form, or everything without it.
func CachePage(view CacheView) Page {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cache", func(w http.ResponseWriter, r *http.Request) {
		var items []cache.Item
		query, err := r.URL.Query(), errUnclear
		if key := query.Get("key"); key != "" {
			items, err = view.LookupKey(r.Context(), key)
		} else if product := query.Get("product"); product != "" {
			items, err = view.Lookup(r.Context(), product, query.Get("component"))
		}
		respond(w, map[string]any{"items": append([]cache.Item{}, items...)}, err)
	})
	mux.HandleFunc("POST /cache/purge", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		product := r.FormValue("product")
		respond(w, map[string]any{"purged": cmp.Or(product, "everything")}, view.Purge(r.Context(), product))
	})
	return Page{Path: "/cache", Handler: mux}
}

// errUnclear is the error of a request, as opposed to those of the cache.
var errUnclear = errors.New("the query needs product=P or key=K")

// respond writes a value as JSON, unless there is an error.
func respond(w http.ResponseWriter, value map[string]any, err error) {
	status := http.StatusOK
	if err != nil {
		status, value = http.StatusBadGateway, map[string]any{"error": err.Error()}
	}
	if errors.Is(err, errUnclear) {
		status = http.StatusBadRequest
	}
	WriteJSON(w, status, value)
}
