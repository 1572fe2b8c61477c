package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// operatorsCaller asks the operators' listener of a running Portico.
type operatorsCaller struct {
	address, tokenFile string
	tls                TLSConfig
}

// register adds the flags of every command that asks.
func (o *operatorsCaller) register(fs *flag.FlagSet) {
	fs.StringVar(&o.address, "admin", "http://"+Default().Admin.Listen, "the operators' listener is at `URL`")
	fs.StringVar(&o.tokenFile, "token-file", "", "the listener's token is in `FILE`")
	fs.StringVar(&o.tls.CAFile, "ca-file", "", "check the listener's certificate against those in `FILE`")
	fs.StringVar(&o.tls.CertFile, "cert-file", "", "show the client certificate in `FILE`")
	fs.StringVar(&o.tls.KeyFile, "key-file", "", "its private key is in `FILE`")
}

// operatorsTime bounds a question, and operatorsAnswer its answer.
const (
	operatorsTime   = 30 * time.Second
	operatorsAnswer = 64 << 20
)

// refusedError is an answer of the operators' listener that is no success.
type refusedError struct {
	status int
	text   []byte
}

// Error says what the listener said, in its own words where there are any.
func (e *refusedError) Error() string {
	var said struct {
		Error    string
		Problems []struct{ Field, Message string }
	}
	if err := json.Unmarshal(e.text, &said); err != nil || said.Error == "" {
		return fmt.Sprintf("the operators' listener says %d: %s", e.status, strings.TrimSpace(string(e.text)))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "the operators' listener says %d: %s", e.status, said.Error)
	for _, p := range said.Problems {
		fmt.Fprintf(&text, "\n  %s: %s", p.Field, p.Message)
	}
	return text.String()
}

// get asks for something to read.
func (o *operatorsCaller) get(ctx context.Context, path string) ([]byte, error) {
	return o.ask(ctx, http.MethodGet, path, "", "")
}

// post asks for a change, as a form does.
func (o *operatorsCaller) post(ctx context.Context, path string, form url.Values) ([]byte, error) {
	return o.ask(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode())
}

// postJSON asks for a change that a form has no room for.
func (o *operatorsCaller) postJSON(ctx context.Context, path string, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return o.ask(ctx, http.MethodPost, path, "application/json", string(text))
}

// getJSON asks for something and reads it into a value.
func (o *operatorsCaller) getJSON(ctx context.Context, path string, into any) error {
	text, err := o.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// ask makes one request. An answer that is no success is a *refusedError.
func (o *operatorsCaller) ask(ctx context.Context, method, path, kind, body string) ([]byte, error) {
	if u, err := url.Parse(o.address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--admin: %s is no address such as http://127.0.0.1:9080", redactURL(o.address))
	}
	ctx, cancel := context.WithTimeout(ctx, operatorsTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(o.address, "/")+path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the operators' listener: %w", err)
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("Accept", "application/json, */*;q=0.5")
	client, err := o.identify(request)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the operators' listener: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, operatorsAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, &refusedError{response.StatusCode, text}
	}
	return text, nil
}

// identify puts the token into a request and gives a client with the certificates
// that were named.
func (o *operatorsCaller) identify(request *http.Request) (*http.Client, error) {
	token, err := readSecret(o.tokenFile, "", nil)
	if err != nil {
		return nil, err
	}
	if token != nil {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	settings := o.tls
	settings.Enabled = true
	client, err := settings.Client()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: client, Proxy: http.ProxyFromEnvironment},
		// A token belongs to the address that it was meant for.
		CheckRedirect: noRedirect,
	}, nil
}

// parseMixed parses flags wherever they stand among the arguments, and gives the
// arguments that are none.
func parseMixed(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for len(args) > 0 {
		if err := fs.Parse(args); err != nil {
			return nil, usageError{err.Error()}
		}
		if args = fs.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return rest, nil
}
