package admin

import (
	"cmp"
	"context"
	"errors"
	"io"
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
// product=P in the query or in a form, or everything without parameters and without a body.
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
		product, err := productToPurge(w, r)
		if err == nil {
			err = view.Purge(r.Context(), product)
		}
		respond(w, map[string]any{"purged": cmp.Or(product, "everything")}, err)
	})
	return Page{Path: "/cache", Handler: mux}
}

// errUnclear is the error of a request, as opposed to those of the cache.
var errUnclear = errors.New("nothing was done: GET /cache needs product=P or key=K in the query; POST /cache/purge takes product=P in the query or in a form, " +
	"or nothing at all for everything")

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

// productToPurge returns the product to purge, empty for everything. Because a purge of everything costs most, it requires a
// request without parameters and without a body, and not one with parameters that are not understood.
func productToPurge(w http.ResponseWriter, r *http.Request) (product string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	err = r.ParseForm()
	rest, _ := io.Copy(io.Discard, r.Body) // ParseForm has read a form to its end
	product = r.Form.Get("product")
	isOne := len(r.Form) == 1 && len(r.Form["product"]) == 1 && product != ""
	if err != nil || rest > 0 || len(r.Form) > 0 && !isOne {
		return "", errUnclear
	}
	return product, nil
}
