package admin

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"portico/cache"
)

// CacheView gives operators access to the caches. It is implemented by cache.Caches.
type CacheView interface {
	// Lookup lists the items of a product, or of one of its components.
	Lookup(ctx context.Context, product, component string) ([]cache.Item, error)
	// LookupKey lists the item with a key, if there is one.
	LookupKey(ctx context.Context, key string) ([]cache.Item, error)
	// Purge removes the items of a product, or all items when product is empty.
	Purge(ctx context.Context, product string) error
}

// CachePage returns the JSON API at /cache: GET ?product=P&component=C or ?key=K lists. POST to /cache/purge purges the product P of
// product=P in the query or in a form, or everything without parameters.
func CachePage(view CacheView) Page {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cache", respond(func(ctx context.Context, _ http.ResponseWriter, r *http.Request) (any, error) {
		items, err := list(ctx, view, r)
		return map[string]any{"items": append([]cache.Item{}, items...)}, err
	}))
	mux.HandleFunc("POST /cache/purge", respond(func(ctx context.Context, w http.ResponseWriter, r *http.Request) (any, error) {
		product, err := productToPurge(w, r)
		if err == nil {
			err = view.Purge(ctx, product)
		}
		return map[string]any{"purged": cmp.Or(product, "everything")}, err
	}))
	return Page{Path: "/cache", Handler: Offer(mux, func(w http.ResponseWriter, _ *http.Request, status int) {
		plain(w, status, "the cache has GET /cache and POST /cache/purge")
	})}
}

// Errors of the request, as opposed to those of the cache.
var (
	errNoSelection = errors.New("ask for a product or for a key")
	errUnclear     = errors.New("name one product in the query or in a form, or nothing at all to purge everything; nothing was purged")
)

// cacheTimeout bounds a lookup or a purge.
const cacheTimeout = 5 * time.Second

// respond writes what act returns as JSON.
func respond(act func(context.Context, http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), cacheTimeout)
		defer cancel()
		value, err := act(ctx, w, r)
		status := http.StatusOK
		switch {
		case errors.Is(err, errNoSelection), errors.Is(err, errUnclear):
			status = http.StatusBadRequest
		case err != nil:
			status = http.StatusBadGateway
		}
		if err != nil {
			value = map[string]any{"error": err.Error()}
		}
		WriteJSON(w, status, value)
	}
}

func list(ctx context.Context, view CacheView, r *http.Request) ([]cache.Item, error) {
	query := r.URL.Query()
	if key := query.Get("key"); key != "" {
		return view.LookupKey(ctx, key)
	}
	if query.Get("product") == "" {
		return nil, errNoSelection
	}
	return view.Lookup(ctx, query.Get("product"), query.Get("component"))
}

// maxPurgeForm is the maximum length of a purge request's body.
const maxPurgeForm = 64 << 10

// productToPurge returns the product to purge, empty for everything. Because a purge of everything costs most, it requires a
// request without parameters and without a body, and not one with parameters that are not understood.
func productToPurge(w http.ResponseWriter, r *http.Request) (product string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPurgeForm)
	if r.ParseForm() != nil {
		return "", errUnclear
	}
	if n, _ := io.Copy(io.Discard, r.Body); n > 0 { // not a form: ParseForm has read a form to its end
		return "", errUnclear
	}
	for name, values := range r.Form {
		if name != "product" || len(values) != 1 || values[0] == "" {
			return "", errUnclear
		}
		product = values[0]
	}
	return product, nil
}
