package main

import (
	"fmt"
	"net/http"
	"strings"
)

// TracesConfig is about traces of requests in the form of OpenTelemetry.
type TracesConfig struct {
	// Endpoint is the address of a collector that speaks OTLP over HTTP, without
	// /v1/traces. Empty means that nothing is traced.
	Endpoint string `key:"endpoint"`
	// Sample is the share of the traces begun here that are recorded. Whether one
	// that a client began is recorded, the client says.
	Sample float64 `key:"sample" min:"0" max:"1"`
	// CAFile holds the PEM certificates that the collector's is checked against, in
	// place of the system's.
	CAFile string `key:"ca_file"`
	// HeadersFile holds headers to send to the collector, one "Name: value" a line.
	HeadersFile string `key:"headers_file"`
	// HeadersEnv names the environment variable that holds them instead.
	HeadersEnv string `key:"headers_env"`
}

// Headers returns what is sent to the collector besides the traces, which is mostly
// a secret. It is empty where none are named.
func (c *TracesConfig) Headers(lookup func(string) (string, bool)) (map[string]string, error) {
	text, err := readSecret(c.HeadersFile, c.HeadersEnv, lookup)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found || !headerName(name) {
			// The line is not shown: it may be the secret.
			return nil, fmt.Errorf("what is not in the form of Name: value cannot be sent as a header")
		}
		headers[http.CanonicalHeaderKey(name)] = strings.TrimSpace(value)
	}
	return headers, nil
}

// headerName reports whether a text can be the name of a header.
func headerName(name string) bool {
	const besides = "!#$%&'*+-.^_`|~"
	other := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(besides, r)
	}
	return name != "" && !strings.ContainsFunc(name, other)
}

// TLS is the collector's part of a TLS connection.
func (c *TracesConfig) TLS() TLSConfig {
	return TLSConfig{Enabled: strings.HasPrefix(c.Endpoint, "https:"), CAFile: c.CAFile}
}
