package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"portico/cmd/portico/config"
)

// adminClient calls the admin listener of a running Portico and prints what it says.
type adminClient struct {
	output
	address, tokenFile string
	// token counts where no file is named.
	token string
	tls   config.TLSFiles
	// actor and reason sign a change for the audit trail.
	actor, reason string
}

// connectionFlags adds the flags that say where the listener is and how the client identifies itself.
func (a *adminClient) connectionFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.address, "admin", "http://"+defaultAdminListen, "the admin listener is at `URL`")
	flags.StringVar(&a.tokenFile, "token-file", "", "the listener's token is in `FILE`")
	flags.StringVar(&a.tls.CAFile, "ca-file", "", "check the listener's certificate against those in `FILE`")
	flags.StringVar(&a.tls.CertFile, "cert-file", "", "show the client certificate in `FILE`")
	flags.StringVar(&a.tls.KeyFile, "key-file", "", "its private key is in `FILE`")
}

// group makes a command of subcommands that call the listener. more are formats of theirs beside text, JSON and YAML.
func (a *adminClient) group(use, short, long string, more []string, subcommands ...*cobra.Command) *cobra.Command {
	c := group(&cobra.Command{Use: use, Short: short, Long: long}, subcommands...)
	a.connectionFlags(c.PersistentFlags())
	a.output.flags(c.PersistentFlags(), more...)
	return c
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

// fetch prints what the listener has under a path as printed does.
func fetch[T any](ctx context.Context, a *adminClient, path string, render func(w io.Writer, value *T)) error {
	text, err := a.get(ctx, path)
	return printed(a, text, err, render)
}

// read returns the value that the listener has under a path.
func read[T any](ctx context.Context, a *adminClient, path string) (value T, err error) {
	text, err := a.get(ctx, path)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	return value, err
}

// change sends a change with the actor and the reason that sign it, and prints the response as printed does.
func change[T any](ctx context.Context, a *adminClient, path string, members map[string]any, render func(w io.Writer, value *T)) error {
	if err := a.signed(); err != nil {
		return err
	}
	text, err := a.post(ctx, path, members)
	return printed(a, text, err, render)
}

// signed returns a usage error for a change without an actor or a reason.
func (a *adminClient) signed() error {
	if strings.TrimSpace(a.actor) == "" || strings.TrimSpace(a.reason) == "" {
		return usageError("needs --actor and --reason, which are kept in the audit trail")
	}
	return nil
}

// post sends values with the actor and the reason.
func (a *adminClient) post(ctx context.Context, path string, members map[string]any) ([]byte, error) {
	members["actor"], members["reason"] = a.actor, a.reason
	return a.call(ctx, http.MethodPost, path, members)
}

// printed prints a response, unless there is an error. As text, render prints it once it has been read into a value, and may align
// columns with tabs.
func printed[T any](a *adminClient, text []byte, err error, render func(w io.Writer, value *T)) error {
	if err != nil {
		return err
	}
	return a.print(text, func(w io.Writer) error {
		var value T
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("read the response: %w", err)
		}
		render(w, &value)
		return nil
	})
}

// call makes one request, with a value as JSON unless that is nil. A response that is no success is an error.
func (a *adminClient) call(ctx context.Context, method, path string, value any) ([]byte, error) {
	if u, err := url.Parse(a.address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("--admin: this is no address such as http://127.0.0.1:9080")
	}
	var body bytes.Buffer
	if value != nil {
		if err := json.NewEncoder(&body).Encode(value); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(a.address, "/")+path, &body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, */*;q=0.5")
	request.Header.Set("Content-Type", "application/json")
	named := config.Secret{File: a.tokenFile}
	if err := named.Read(nil); err != nil {
		return nil, err
	}
	if token := cmp.Or(named.Text(), a.token); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	settings, err := a.tls.Client()
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout:       adminTimeout,
		Transport:     &http.Transport{TLSClientConfig: settings, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a token belongs to one address
	}
	waiting := a.env.progress(func() string { return "waiting for the admin listener" })
	defer waiting.stop()
	response, err := client.Do(request)
	if err != nil {
		remedy := "is it running? use --admin"
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			remedy = "name the file of its authority with --ca-file"
		} else if errors.Is(err, http.ErrSchemeMismatch) {
			remedy = "use http:// in --admin"
		}
		return nil, unreachable(err, "Portico's admin listener", remedy)
	}
	defer response.Body.Close()
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") { // the listener sends pages to browsers only
		return nil, fmt.Errorf("a web page with status %d is at %s, which is not Portico's admin listener; use --admin", response.StatusCode, request.URL.Host)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAdminResponse))
	if err == nil && response.StatusCode != http.StatusOK {
		err = newRefusal(response.StatusCode, text)
	}
	if response.StatusCode == http.StatusUnauthorized {
		err = fmt.Errorf("%w; check --token-file, or --cert-file and --key-file", err)
	}
	return text, err
}

// refusal is the error for a response that is no success.
type refusal struct {
	status int
	// text is the listener's own where it has one.
	text string
}

// Error implements error.
func (r refusal) Error() string {
	return fmt.Sprintf("the admin listener says %d: %s", r.status, r.text)
}

func newRefusal(status int, text []byte) refusal {
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
	return refusal{status, refused.Error}
}

// unreachable is the error for a call that got no response: one sentence without the address's path and query, which may hold a key.
func unreachable(err error, whom, remedy string) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	host, cause := "", failed.Err
	if at, err := url.Parse(failed.URL); err == nil {
		host = at.Host
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		cause = number
	} else if name, ok := errors.AsType[*net.DNSError](err); ok {
		cause = errors.New(name.Err)
	} else if failed.Timeout() {
		cause = errors.New("no response in time")
	}
	return fmt.Errorf("cannot reach %s at %s: %w; %s", whom, host, cause, remedy)
}

// line renders one line, whatever the response says.
func line(text string) func(io.Writer, *struct{}) {
	return func(w io.Writer, _ *struct{}) { fmt.Fprintln(w, text) }
}
