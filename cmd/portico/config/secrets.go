package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Variables finds a variable of the environment. One that is not set is empty.
type Variables = func(name string) (value string)

// Secret names where a secret is: in a file or in a variable of the environment. Secrets themselves never stand in the
// configuration. Its keys stand in a section of their own, or behind a word such as token_ in the section around them.
type Secret struct {
	// File holds the secret.
	File string `key:"file"`
	// Env names the environment variable that holds it instead.
	Env string `key:"env"`

	text string
}

// Given reports whether a secret is named.
func (s Secret) Given() bool { return s.String() != "" }

// String names the place of the secret.
func (s Secret) String() string { return s.File + s.Env }

// source is the name of the key that says where the secret is.
func (s Secret) source() string {
	if s.File == "" {
		return "env"
	}
	return "file"
}

// Text returns the secret, which Problems or Read has read. It is empty where none is named.
func (s Secret) Text() string { return s.text }

// Read reads the secret, if one is named, without line ends at its end. An empty one is an error.
func (s *Secret) Read(variables Variables) error {
	switch {
	case !s.Given():
		return nil
	case s.File != "" && s.Env != "":
		return errors.New("a file and an environment variable exclude each other")
	case s.Env != "":
		s.text = variables(s.Env)
	default:
		content, err := os.ReadFile(s.File)
		if err != nil {
			return fmt.Errorf("reading the secret: %w", err)
		}
		s.text = string(content)
	}
	if s.text = strings.TrimRight(s.text, "\r\n"); s.text == "" {
		return errors.New("is not set or empty") // without its name: the secret itself may stand there by mistake
	}
	return nil
}

// ReadHeaders returns what is sent to the collector besides the traces, which is mostly a secret. It is empty where none is named.
func (t *Traces) ReadHeaders() (map[string]string, error) {
	headers := map[string]string{}
	for line := range strings.FieldsFuncSeq(t.Headers.text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		name, value, _ := strings.Cut(line, ":")
		if headers[name] = strings.TrimSpace(value); !is(line, "header") {
			return nil, errors.New("a line is not in the form of Name: value") // the line may be the secret
		}
	}
	return headers, nil
}

// KeyPair is a certificate and its private key in PEM files. It is empty where none is shown.
type KeyPair struct {
	// CertFile is the certificate that is shown, with those that lead to its root.
	CertFile string `key:"cert_file"`
	// KeyFile is the private key of CertFile.
	KeyFile string `key:"key_file"`
}

// On reports whether there is one: a listener without it speaks plain HTTP.
func (p KeyPair) On() bool { return p.CertFile != "" }

// TLSFiles are PEM files for the client's side of a TLS connection.
type TLSFiles struct {
	// CAFile holds the certificates that those of the other side are checked against, in place of the system's.
	CAFile string `key:"ca_file" holds:"certificates"`
	// KeyPair is shown to the other side.
	KeyPair `keys:""`
}

// Client returns the settings for a TLS client.
func (t TLSFiles) Client() (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading certificates: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("cert_file and key_file need each other")
	}
	if t.On() {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// TLS is the client's side of a TLS connection that may be plain.
type TLS struct {
	// Enabled turns TLS on; so do the other keys, and a rediss:// URL.
	Enabled bool `key:"enabled"`
	// TLSFiles are the certificates.
	TLSFiles `keys:""`
	// ServerName is the name in the server's certificate, where it differs from the address.
	ServerName string `key:"server_name"`
}

// Client returns the settings for the connection to Redis, or nil for a plain one.
func (r *Redis) Client() (*tls.Config, error) {
	if r.TLS == (TLS{}) && !strings.HasPrefix(r.URL, "rediss:") {
		return nil, nil
	}
	settings, err := r.TLS.Client()
	if err == nil {
		settings.ServerName = r.TLS.ServerName
	}
	return settings, err
}

// OpenToAll reports whether other machines reach an address of the admin listener without a token or a certificate.
func (a *Admin) OpenToAll(address string) bool {
	return toOthers(address) && !a.Token.Given() && a.TLS.ClientCAFile == ""
}

// toOthers reports whether other machines reach an address.
func toOthers(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !loopback(host)
}
