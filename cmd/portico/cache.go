package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"portico/cache"
)

// cacheCommand is portico cache.
func cacheCommand(env environment) *cobra.Command {
	a := &adminClient{out: env.stdout}
	c := group(&cobra.Command{
		Use: "cache", Short: "show the cache of a running Portico, or purge it",
		Long: "Call the operators' listener of a running Portico. show tells for each cached response why the\n" +
			"next read is or is not served from it; purge removes a product, or everything.",
	}, cacheShowCommand(a), cachePurgeCommand(a))
	a.flags(c.PersistentFlags())
	a.format = formatFlags(c.PersistentFlags(), "text", "json")
	return c
}

// cacheShowCommand is portico cache show.
func cacheShowCommand(a *adminClient) *cobra.Command {
	c := &cobra.Command{Use: "show KEY | --product P [--component C]", Short: "list cached responses"}
	product := c.Flags().String("product", "", "the product `P`")
	component := c.Flags().String("component", "", "the component `C` of the product")
	c.RunE = func(c *cobra.Command, args []string) error {
		query := url.Values{"product": {*product}, "component": {*component}}
		if len(args) == 1 {
			query = url.Values{"key": args}
		}
		if len(args) > 1 || (len(args) == 1) == (*product != "") {
			return usageError("takes either KEY or --product P")
		}
		var found struct{ Items []cache.Item }
		return a.show(c.Context(), "/cache?"+query.Encode(), &found, func(w io.Writer) { printItems(w, found.Items) })
	}
	return c
}

func printItems(w io.Writer, items []cache.Item) {
	if len(items) == 0 {
		fmt.Fprintln(w, "The cache holds nothing of that: the next read asks the tracker.")
		return
	}
	tracker := func(string) string { return "" }
	if items[0].Tracker != "" {
		tracker = func(name string) string { return "\t" + name }
	}
	fmt.Fprintf(w, "STATE\tAGE\tFRESH FOR\tBYTES\tPRODUCT\tCOMPONENT\tSHARED BY%s\tWHY\tKEY\n", tracker("TRACKER"))
	for _, item := range items {
		fmt.Fprintf(w, "%s\t%.0fs\t%.0fs\t%d\t%s\t%s\t%s%s\t%s\t%s\n", item.State, item.AgeSeconds, item.TTLSeconds,
			item.Bytes, item.Product, item.Component, item.Scope, tracker(item.Tracker), item.Why, item.Key)
	}
}

// cachePurgeCommand is portico cache purge.
func cachePurgeCommand(a *adminClient) *cobra.Command {
	c := &cobra.Command{Use: "purge", Args: takes(), Short: "remove a product, or everything"}
	product := c.Flags().String("product", "", "remove the product `P` only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := "/cache/purge"
		if c.Flags().Changed("product") {
			path += "?product=" + url.QueryEscape(*product)
		}
		if path == "/cache/purge?product=" { // an empty variable in a script must not purge everything
			return usageError("--product is empty")
		}
		text, err := a.call(c.Context(), http.MethodPost, path, nil)
		if err != nil {
			return err
		}
		return a.print(text, &struct{}{}, line("Purged."))
	}
	return c
}
