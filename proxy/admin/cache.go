package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// CacheItem is what the cache holds for one key, as an operator may see it: no content, no credential.
type CacheItem struct {
	// Tracker is the one that answered, where there are several.
	Tracker string `json:"tracker,omitempty"`
	// Key is the key in Redis.
	Key string `json:"key"`
	// Scope names who shares the answer, in a form that leads back to nobody.
	Scope string `json:"scope"`
	// Product and Component are those that were asked for.
	Product   string `json:"product"`
	Component string `json:"component,omitempty"`
	// State is fresh, stale, expired or outdated.
	State string `json:"state"`
	// Why says in words why the next read is or is not answered from it.
	Why string `json:"why"`
	// AgeSeconds is how old it is, and TTLSeconds how long it stays fresh.
	AgeSeconds float64 `json:"age_seconds"`
	TTLSeconds float64 `json:"ttl_seconds"`
	// Bytes is the length of the answer.
	Bytes int `json:"bytes"`
}

// CacheDesk is what an operator may ask of a cache.
type CacheDesk struct {
	// Product lists what is held for a product, or for one of its components.
	Product func(ctx context.Context, product, component string) ([]CacheItem, error)
	// Key tells what is held under one key; false means nothing.
	Key func(ctx context.Context, key string) (CacheItem, bool, error)
	// Purge forgets a product, or everything when product is empty.
	Purge func(ctx context.Context, product string) error
}

// deskTime bounds a question to the cache.
const deskTime = 5 * time.Second

// Page is the desk at /cache: GET ?product=P&component=C or ?key=K lists, POST to /cache/purge with product=P in the
// query or a form, or with nothing, forgets. Answers are JSON.
func (d CacheDesk) Page() Page {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cache", d.listed)
	mux.HandleFunc("POST /cache/purge", d.purge)
	return Page{Path: "/cache", Handler: Offer(mux, func(w http.ResponseWriter, _ *http.Request, status int) {
		plain(w, status, "the cache has GET /cache and POST /cache/purge")
	})}
}

func (d CacheDesk) listed(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), deskTime)
	defer cancel()
	items, err := d.list(ctx, r)
	tell(w, map[string]any{"items": items}, err)
}

func (d CacheDesk) purge(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), deskTime)
	defer cancel()
	product, err := purged(w, r)
	if err == nil {
		err = d.Purge(ctx, product)
	}
	tell(w, map[string]any{"purged": firstOf(product, "everything")}, err)
}

func firstOf(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// Why a question or a wish is refused.
var (
	errNothingAsked = errors.New("ask for a product or for a key")
	errUnclear      = errors.New("name one product in the query or in a form, or nothing at all to purge everything; nothing was purged")
)

// purgeForm is the most that a wish may have to say.
const purgeForm = 64 << 10

// purged reads what is to be forgotten, empty for everything. As that costs most, it
// takes a request that says nothing, and not one that says something else.
func purged(w http.ResponseWriter, r *http.Request) (product string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, purgeForm)
	if r.ParseForm() != nil {
		return "", errUnclear
	}
	if n, _ := io.Copy(io.Discard, r.Body); n > 0 { // no form: a form was read already
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

func (d CacheDesk) list(ctx context.Context, r *http.Request) ([]CacheItem, error) {
	query := r.URL.Query()
	if key := query.Get("key"); key != "" {
		item, found, err := d.Key(ctx, key)
		if err != nil || !found {
			return []CacheItem{}, err
		}
		return []CacheItem{item}, nil
	}
	if query.Get("product") == "" {
		return nil, errNothingAsked
	}
	items, err := d.Product(ctx, query.Get("product"), query.Get("component"))
	if items == nil {
		items = []CacheItem{}
	}
	return items, err
}

// tell answers with a value or says what went wrong.
func tell(w http.ResponseWriter, value any, err error) {
	status := http.StatusOK
	if err != nil {
		value, status = map[string]any{"error": err.Error()}, http.StatusBadGateway
	}
	if errors.Is(err, errNothingAsked) || errors.Is(err, errUnclear) {
		status = http.StatusBadRequest
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		plain(w, http.StatusInternalServerError, "the answer cannot be shown")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an operator who went away needs no error
}
