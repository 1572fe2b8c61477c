package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"

	"portico/proxy/admin"
)

// cacheCommand is portico cache.
func cacheCommand() command {
	return command{
		name:      "cache",
		arguments: "show KEY | show --product P [--component C] | purge [--product P]",
		summary:   "look into the cache of a running Portico, or purge it",
		details: "Ask the operators' listener of a running Portico. show tells for each answer why the\n" +
			"next read is or is not given from it; purge forgets a product, or everything.",
		prepare: func(fs *flag.FlagSet) runner {
			desk := cacheCaller{}
			desk.register(fs)
			fs.StringVar(&desk.product, "product", "", "the product `P`")
			fs.StringVar(&desk.component, "component", "", "the component `C` of the product")
			fs.BoolVar(&desk.json, "json", false, "print JSON")
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if len(args) == 0 {
					return exitUsage, usageError{"needs show or purge"}
				}
				rest, err := parseMixed(fs, args[1:])
				if err != nil {
					return exitUsage, err
				}
				// An empty variable in a script must not purge everything.
				fs.Visit(func(f *flag.Flag) { desk.blank = desk.blank || f.Name == "product" && desk.product == "" })
				return desk.run(ctx, env.stdout, args[0], rest)
			}
		},
	}
}

// cacheCaller asks the operators' listener about the cache.
type cacheCaller struct {
	operatorsCaller

	product, component string
	// blank says that a product was named and has no name.
	blank, json bool
}

func (c cacheCaller) run(ctx context.Context, w io.Writer, word string, args []string) (int, error) {
	switch {
	case c.blank:
		return exitUsage, usageError{"--product is empty"}
	case word == "show" && len(args) == 1 && c.product == "":
		return c.show(ctx, w, url.Values{"key": args})
	case word == "show" && len(args) == 0 && c.product != "":
		return c.show(ctx, w, url.Values{"product": {c.product}, "component": {c.component}})
	case word == "purge" && c.component != "":
		return exitUsage, usageError{"purge forgets a whole product: --component is for show"}
	case word == "purge" && len(args) == 0:
		return c.purge(ctx, w)
	default:
		return exitUsage, usageError{"takes show KEY, show --product P or purge [--product P]"}
	}
}

func (c cacheCaller) show(ctx context.Context, w io.Writer, query url.Values) (int, error) {
	text, err := c.get(ctx, "/cache?"+query.Encode())
	if err != nil {
		return exitFailed, err
	}
	if c.json {
		_, err = w.Write(text)
		return exitOK, err
	}
	var answer struct {
		Items []admin.CacheItem `json:"items"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return exitFailed, fmt.Errorf("read the answer: %w", err)
	}
	return exitOK, printItems(w, answer.Items)
}

func printItems(w io.Writer, items []admin.CacheItem) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "The cache holds nothing of that: the next read asks the tracker.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	tracker := func(text string) string { return "" }
	if items[0].Tracker != "" {
		tracker = func(text string) string { return "\t" + text }
	}
	fmt.Fprintf(table, "STATE\tAGE\tFRESH FOR\tBYTES\tPRODUCT\tCOMPONENT\tSHARED BY%s\tWHY\tKEY\n", tracker("TRACKER"))
	for _, item := range items {
		fmt.Fprintf(table, "%s\t%.0fs\t%.0fs\t%d\t%s\t%s\t%s%s\t%s\t%s\n", item.State, item.AgeSeconds, item.TTLSeconds,
			item.Bytes, item.Product, item.Component, item.Scope, tracker(item.Tracker), item.Why, item.Key)
	}
	return table.Flush()
}

func (c cacheCaller) purge(ctx context.Context, w io.Writer) (int, error) {
	form := url.Values{}
	if c.product != "" {
		form.Set("product", c.product)
	}
	text, err := c.post(ctx, "/cache/purge", form)
	if err != nil {
		return exitFailed, err
	}
	if !c.json {
		text = []byte("Purged.\n")
	}
	_, err = w.Write(text)
	return exitOK, err
}
