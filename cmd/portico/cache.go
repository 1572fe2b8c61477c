package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"portico/cache"
)

// cacheCommand is portico cache.
func cacheCommand(env environment) *cobra.Command {
	a := &adminClient{output: output{env: env}}
	return a.group("cache", "show the cache of a running Portico, or purge it",
		`Ask a running Portico through its admin listener. show says for each cached response why the
next read is or is not served from it. purge removes a product, or everything.`,
		nil, cacheShowCommand(a), cachePurgeCommand(a))
}

// cacheShowCommand is portico cache show.
func cacheShowCommand(a *adminClient) *cobra.Command {
	var product, component string
	c := command("show KEY | --product P [--component C]", "list cached responses", func(ctx context.Context, args []string) error {
		query := url.Values{"product": {product}, "component": {component}}
		if len(args) == 1 {
			query = url.Values{"key": args}
		}
		if len(args) > 1 || (len(args) == 1) == (product != "") {
			return usageError("takes either KEY or --product P")
		}
		return fetch(ctx, a, "/cache?"+query.Encode(), renderItems)
	})
	c.Args = cobra.ArbitraryArgs
	c.Flags().StringVar(&product, "product", "", "the product `P`")
	c.Flags().StringVar(&component, "component", "", "the component `C` of the product")
	return c
}

// cachedItems is what the listener has of the cache.
type cachedItems struct{ Items []cache.Item }

func renderItems(w io.Writer, found *cachedItems) {
	if len(found.Items) == 0 {
		fmt.Fprintln(w, "The cache holds nothing of that: the next read asks the tracker.")
		return
	}
	fmt.Fprintln(w, "STATE\tAGE\tFRESH FOR\tBYTES\tPRODUCT\tCOMPONENT\tSHARED BY\tTRACKER\tWHY\tKEY")
	for _, item := range found.Items {
		fmt.Fprintf(w, "%s\t%.0fs\t%.0fs\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", item.State, item.AgeSeconds, item.TTLSeconds,
			item.Bytes, item.Product, item.Component, item.Scope, item.Tracker, item.Why, item.Key)
	}
}

// cachePurgeCommand is portico cache purge.
func cachePurgeCommand(a *adminClient) *cobra.Command {
	path := "/cache/purge"
	c := command("purge", "remove a product, or everything", func(ctx context.Context, _ []string) error {
		text, err := a.call(ctx, http.MethodPost, path, nil)
		return printed(a, text, err, line("Purged."))
	})
	c.Flags().Func("product", "remove the product `P` only", func(product string) error {
		if product == "" { // an empty variable in a script must not purge everything
			return errors.New("is empty")
		}
		path = "/cache/purge?product=" + url.QueryEscape(product)
		return nil
	})
	return c
}
