package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Secret returns the key that credentials are hashed under, or nil where the
// operator leaves it to the program.
func (c *CacheConfig) Secret(lookup func(string) (string, bool)) ([]byte, error) {
	secret, err := readSecret(c.SecretFile, c.SecretEnv, lookup)
	if err == nil && secret != nil && len(secret) < 16 {
		return nil, errors.New("the secret is shorter than 16 bytes")
	}
	return secret, err
}

// Password returns the password of Redis, or nil where there is none.
func (r *RedisConfig) Password(lookup func(string) (string, bool)) ([]byte, error) {
	return readSecret(r.PasswordFile, r.PasswordEnv, lookup)
}

// Key returns the key that the caller shows, or nil where none is named.
func (c *CallerConfig) Key(lookup func(string) (string, bool)) ([]byte, error) {
	return readSecret(c.KeyFile, c.KeyEnv, lookup)
}

// ShadowKey returns the key for the other tracker, or nil where none is named.
func (c *CallerConfig) ShadowKey(lookup func(string) (string, bool)) ([]byte, error) {
	return readSecret(c.ShadowKeyFile, c.ShadowKeyEnv, lookup)
}

// ServiceKey returns the key of the service, or nil where none is named.
func (c *CanaryConfig) ServiceKey(lookup func(string) (string, bool)) ([]byte, error) {
	return readSecret(c.ServiceKeyFile, c.ServiceKeyEnv, lookup)
}

// readSecret reads a secret from a file or from a variable of the environment.
// Secrets themselves never stand in the configuration. The line end that
// editors put behind the last line is no part of them.
func readSecret(file, env string, lookup func(string) (string, bool)) ([]byte, error) {
	switch {
	case file != "" && env != "":
		return nil, errors.New("a file and an environment variable exclude each other")
	case file != "":
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the secret: %w", err)
		}
		return notEmpty(string(content), file)
	case env != "":
		value, _ := lookup(env)
		return notEmpty(value, env)
	}
	return nil, nil
}

// secretKey is the key that a problem with a secret is about.
func secretKey(path, file, env string) string {
	if file == "" && env != "" {
		return path + "_env"
	}
	return path + "_file"
}

// notEmpty refuses the empty secret, which would be none at all. What fills variables from files
// keeps the line end, too.
func notEmpty(secret, source string) ([]byte, error) {
	secret = strings.TrimRight(secret, "\r\n")
	if secret == "" {
		return nil, fmt.Errorf("%s holds nothing", source)
	}
	return []byte(secret), nil
}

// ClientTLS returns the settings for the connection to Redis, or nil for a plain
// one.
func (r *RedisConfig) ClientTLS() (*tls.Config, error) {
	t := r.TLS
	t.Enabled = t.Enabled || strings.HasPrefix(r.URL, "rediss:")
	return t.Client()
}

// TLS is the tracker's part of a TLS connection.
func (t *TrackerConfig) TLS() TLSConfig {
	return TLSConfig{
		Enabled: strings.HasPrefix(t.URL, "https:"),
		CAFile:  t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile,
	}
}

// Client returns the settings for a TLS client, or nil where TLS is off.
func (t TLSConfig) Client() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	certificates, err := t.certificates()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      roots,
		Certificates: certificates,
		ServerName:   t.ServerName,
	}, nil
}

// roots reads the certificates to trust; nil means the system's.
func (t TLSConfig) roots() (*x509.CertPool, error) {
	if t.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", t.CAFile)
	}
	return pool, nil
}

// certificates reads the certificate to show; none means that none is shown.
func (t TLSConfig) certificates() ([]tls.Certificate, error) {
	switch {
	case t.CertFile == "" && t.KeyFile == "":
		return nil, nil
	case t.CertFile == "" || t.KeyFile == "":
		return nil, errors.New("cert_file and key_file need each other")
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// redacted stands where a secret was.
const redacted = "REDACTED"

// redactURL removes what may be secret from a URL before it is printed: name
// and password, and the values of the query. What is no URL, but looks as if a
// name and password were in it, is not printed at all.
func redactURL(text string) string {
	if ip, err := netip.ParseAddrPort(text); err == nil {
		return ip.String() // where a URL should be, which is no secret
	}
	u, err := url.Parse(text)
	if err != nil || (u.Opaque != "" || u.Scheme == "") && strings.Contains(text, "@") {
		return redacted
	}
	if u.User != nil {
		u.User = url.User(redacted)
	}
	if u.RawQuery != "" {
		query := u.Query()
		for key := range query {
			query.Set(key, redacted)
		}
		u.RawQuery = query.Encode()
	}
	return u.String()
}

// sortedKeys returns the names in a map in a stable order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
