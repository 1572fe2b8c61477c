package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"portico/cmd/portico/config"
)

// adminClient calls the operators' listener of a running Portico and prints what it says.
type adminClient struct {
	address, tokenFile string
	// token counts where no file is named.
	token string
	tls   config.TLSFiles
	// out is where responses are printed, in this format.
	out    io.Writer
	format *string
	// actor and reason sign a change for the audit trail.
	actor, reason string
}

// flags adds the flags that say where the listener is and how the client identifies itself.
func (a *adminClient) flags(flags *pflag.FlagSet) {
	flags.StringVar(&a.address, "admin", "http://"+defaultAdminListen, "the operators' listener is at `URL`")
	flags.StringVar(&a.tokenFile, "token-file", "", "the listener's token is in `FILE`")
	flags.StringVar(&a.tls.CAFile, "ca-file", "", "check the listener's certificate against those in `FILE`")
	flags.StringVar(&a.tls.CertFile, "cert-file", "", "show the client certificate in `FILE`")
	flags.StringVar(&a.tls.KeyFile, "key-file", "", "its private key is in `FILE`")
}

// signatureFlags adds the flags that sign a change.
func (a *adminClient) signatureFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.actor, "actor", "", "your `NAME`, for the audit trail")
	flags.StringVar(&a.reason, "reason", "", "why, as a `TEXT` for the audit trail")
}

// adminTimeout bounds a call, and maxAdminResponse its response.
const (
	adminTimeout     = 30 * time.Second
	maxAdminResponse = 64 << 20
)

// get returns what the listener has under a path.
func (a *adminClient) get(ctx context.Context, path string) ([]byte, error) {
	return a.call(ctx, http.MethodGet, path, nil)
}

// show prints what the listener has under a path as print does.
func (a *adminClient) show(ctx context.Context, path string, into any, show func(w io.Writer)) error {
	text, err := a.get(ctx, path)
	if err != nil {
		return err
	}
	return a.print(text, into, show)
}

// getJSON reads what the listener has under a path into a value.
func (a *adminClient) getJSON(ctx context.Context, path string, into any) error {
	text, err := a.get(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// change sends a change with the actor and the reason that sign it, and prints the response as print does.
func (a *adminClient) change(ctx context.Context, path string, members map[string]any, into any, show func(w io.Writer)) error {
	if strings.TrimSpace(a.actor) == "" || strings.TrimSpace(a.reason) == "" {
		return usageError("needs --actor and --reason, which are kept in the audit trail")
	}
	members["actor"], members["reason"] = a.actor, a.reason
	text, err := a.call(ctx, http.MethodPost, path, members)
	if err != nil {
		return err
	}
	return a.print(text, into, show)
}

// call makes one request, with a value as JSON unless that is nil. A response that is no success is an error.
func (a *adminClient) call(ctx context.Context, method, path string, value any) ([]byte, error) {
	if u, err := url.Parse(a.address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--admin: %s is no address such as http://127.0.0.1:9080", config.RedactURL(a.address))
	}
	var body bytes.Buffer
	if value != nil {
		if err := json.NewEncoder(&body).Encode(value); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(a.address, "/")+path, &body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, */*;q=0.5")
	if value != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	token, err := config.Secret{File: a.tokenFile}.Read(nil)
	if err != nil {
		return nil, err
	}
	if token == nil {
		token = []byte(a.token)
	}
	if len(token) > 0 {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	settings, err := a.tls.Client()
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: settings, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: noRedirect, // a token belongs to the address that it was meant for
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the operators' listener: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAdminResponse))
	if err == nil && response.StatusCode != http.StatusOK {
		err = refusal(response.StatusCode, text)
	}
	return text, err
}

// refusal is the error for a response that is no success, in the listener's own words where there are any.
func refusal(status int, text []byte) error {
	var refused struct {
		Error    string
		Problems []struct{ Field, Message string }
	}
	if err := json.Unmarshal(text, &refused); err != nil || refused.Error == "" {
		refused.Error = strings.TrimSpace(string(text))
	}
	for _, p := range refused.Problems {
		refused.Error += fmt.Sprintf("\n  %s: %s", p.Field, p.Message)
	}
	return fmt.Errorf("the operators' listener says %d: %s", status, refused.Error)
}

// print prints a response: as it is where the format is json or show is nil, and else as show prints it once it has been read into
// a value. show may align columns with tabs.
func (a *adminClient) print(text []byte, into any, show func(w io.Writer)) error {
	if show == nil || *a.format == "json" {
		_, err := a.out.Write(text)
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	show(table)
	return table.Flush()
}

// line shows one line, whatever the response says.
func line(text string) func(w io.Writer) {
	return func(w io.Writer) { fmt.Fprintln(w, text) }
}
