package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

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
			fs.StringVar(&desk.address, "admin", "http://"+Default().Admin.Listen, "the operators' listener is at `URL`")
			fs.StringVar(&desk.product, "product", "", "the product `P`")
			fs.StringVar(&desk.component, "component", "", "the component `C` of the product")
			fs.StringVar(&desk.tokenFile, "token-file", "", "the listener's token is in `FILE`")
			fs.StringVar(&desk.tls.CAFile, "ca-file", "", "check the listener's certificate against those in `FILE`")
			fs.StringVar(&desk.tls.CertFile, "cert-file", "", "show the client certificate in `FILE`")
			fs.StringVar(&desk.tls.KeyFile, "key-file", "", "its private key is in `FILE`")
			fs.BoolVar(&desk.json, "json", false, "print JSON")
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if len(args) == 0 {
					return exitUsage, usageError{"needs show or purge"}
				}
				// Flags may follow the word as well as stand before it.
				if err := fs.Parse(args[1:]); err != nil {
					return exitUsage, usageError{err.Error()}
				}
				return desk.run(ctx, env.stdout, args[0], fs.Args())
			}
		},
	}
}

// cacheCaller asks the operators' listener about the cache.
type cacheCaller struct {
	address, product, component string
	tokenFile                   string
	tls                         TLSConfig
	json                        bool
}

func (c cacheCaller) run(ctx context.Context, w io.Writer, word string, args []string) (int, error) {
	switch {
	case word == "show" && len(args) == 1 && c.product == "":
		return c.show(ctx, w, url.Values{"key": args})
	case word == "show" && len(args) == 0 && c.product != "":
		return c.show(ctx, w, url.Values{"product": {c.product}, "component": {c.component}})
	case word == "purge" && len(args) == 0:
		return c.purge(ctx, w)
	default:
		return exitUsage, usageError{"takes show KEY, show --product P or purge [--product P]"}
	}
}

func (c cacheCaller) show(ctx context.Context, w io.Writer, query url.Values) (int, error) {
	text, err := c.ask(ctx, http.MethodGet, "/cache?"+query.Encode(), nil)
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
	fmt.Fprintln(table, "STATE\tAGE\tFRESH FOR\tBYTES\tPRODUCT\tCOMPONENT\tSHARED BY\tWHY")
	for _, item := range items {
		fmt.Fprintf(table, "%s\t%.0fs\t%.0fs\t%d\t%s\t%s\t%s\t%s\n", item.State, item.AgeSeconds, item.TTLSeconds,
			item.Bytes, item.Product, item.Component, item.Scope, item.Why)
	}
	return table.Flush()
}

func (c cacheCaller) purge(ctx context.Context, w io.Writer) (int, error) {
	text, err := c.ask(ctx, http.MethodPost, "/cache/purge", url.Values{"product": {c.product}})
	if err != nil {
		return exitFailed, err
	}
	if !c.json {
		text = []byte("Purged.\n")
	}
	_, err = w.Write(text)
	return exitOK, err
}

// ask makes one request to the operators' listener.
func (c cacheCaller) ask(ctx context.Context, method, path string, form url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.address, "/")+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the address of the operators' listener cannot be used")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client, err := c.identify(request)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the operators' listener: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the operators' listener says %d: %s", response.StatusCode, strings.TrimSpace(string(text)))
	}
	return text, nil
}

// identify puts the token into a request and gives a client with the certificates
// that were named.
func (c cacheCaller) identify(request *http.Request) (*http.Client, error) {
	token, err := readSecret(c.tokenFile, "", nil)
	if err != nil {
		return nil, err
	}
	if token != nil {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	c.tls.Enabled = true
	settings, err := c.tls.Client()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: settings, Proxy: http.ProxyFromEnvironment},
		// A token belongs to the address that it was meant for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
