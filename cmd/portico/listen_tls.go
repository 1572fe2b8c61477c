package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"portico/proxy"
)

// doors are the TLS settings of both listeners; nil is plain HTTP. They belong to
// a house, so that renewed certificates come in by a reload.
type doors struct {
	clients, operators *tls.Config
}

// certificates reads the certificates of both listeners.
func (b *builder) certificates() error {
	var err error
	if b.house.doors.clients, err = b.cfg.TLS.Server(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if b.house.doors.operators, err = b.cfg.Admin.TLS.Server(); err != nil {
		return fmt.Errorf("admin.tls: %w", err)
	}
	return nil
}

// clientSocket puts TLS on the listener for clients, if it is asked for.
func clientSocket(socket net.Listener, cfg Config, scene *stage) net.Listener {
	if !cfg.TLS.on() {
		return proxy.Listener(socket)
	}
	settings := scene.tls(func(h *house) *tls.Config { return h.doors.clients })
	return proxy.SecureListener(socket, settings, cfg.Timeouts.Header)
}

// operatorSocket puts TLS on the listener for operators, if it is asked for.
func operatorSocket(socket net.Listener, cfg Config, scene *stage) net.Listener {
	if !cfg.Admin.TLS.on() {
		return socket
	}
	return tls.NewListener(socket, scene.tls(func(h *house) *tls.Config { return h.doors.operators }))
}

var errNoCertificate = errors.New("the current configuration has no certificate for this listener")

// tls gives settings that ask the current house for its certificates.
func (s *stage) tls(of func(*house) *tls.Config) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			rooms, leave := s.enter()
			defer leave()
			if settings := of(rooms); settings != nil {
				return settings, nil
			}
			return nil, errNoCertificate
		},
	}
}

func (t ServerTLSConfig) on() bool { return t.CertFile != "" }

func (t AdminTLSConfig) on() bool { return t.CertFile != "" }

// Server returns the settings for a TLS server, or nil where TLS is off. HTTP/2
// is not offered: it would bring a second reading of every request and win
// nothing for clients that ask one thing at a time.
func (t ServerTLSConfig) Server() (*tls.Config, error) {
	certificates, err := TLSConfig{CertFile: t.CertFile, KeyFile: t.KeyFile}.certificates()
	if err != nil || certificates == nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificates, NextProtos: []string{"http/1.1"}}, nil
}

// Server returns the same for operators. A client certificate is asked for and
// checked, but not demanded: health checks come without one, and admin.Server
// tells who may do what.
func (t AdminTLSConfig) Server() (*tls.Config, error) {
	settings, err := ServerTLSConfig{CertFile: t.CertFile, KeyFile: t.KeyFile}.Server()
	if err != nil || settings == nil {
		return nil, err
	}
	if settings.ClientCAs, err = t.clientRoots(); err == nil && settings.ClientCAs != nil {
		settings.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return settings, err
}

// clientRoots reads the certificates that vouch for operators; nil means none.
func (t AdminTLSConfig) clientRoots() (*x509.CertPool, error) {
	return TLSConfig{CAFile: t.ClientCAFile}.roots()
}

// Token returns the token of the operators' listener, or nil where there is none.
func (a *AdminConfig) Token(lookup func(string) (string, bool)) ([]byte, error) {
	token, err := readSecret(a.TokenFile, a.TokenEnv, lookup)
	if err == nil && token != nil && len(token) < 16 {
		return nil, errors.New("the token is shorter than 16 bytes")
	}
	return token, err
}

// validateServing checks the certificates of both listeners, and that nobody
// reaches the operators' one from another machine without being asked who he is.
func validateServing(c *Config, l *problemList, lookup func(string) (string, bool)) {
	if _, err := c.TLS.Server(); err != nil {
		l.errorf("tls.cert_file", "%s", err)
	}
	admin := c.Admin
	if _, err := (ServerTLSConfig{CertFile: admin.TLS.CertFile, KeyFile: admin.TLS.KeyFile}).Server(); err != nil {
		l.errorf("admin.tls.cert_file", "%s", err)
	}
	if _, err := admin.TLS.clientRoots(); err != nil {
		l.errorf("admin.tls.client_ca_file", "%s", err)
	} else if admin.TLS.ClientCAFile != "" && !admin.TLS.on() {
		l.errorf("admin.tls.client_ca_file", "needs cert_file and key_file: without TLS nobody shows a certificate")
	}
	token, err := admin.Token(lookup)
	if err != nil {
		l.errorf(secretKey("admin.token", admin.TokenFile, admin.TokenEnv), "%s", err)
	}
	switch {
	case openToAll(admin.Listen, admin):
		l.errorf("admin.listen", "%s is open to other machines, and nothing asks them who they are: "+
			"set admin.token_file, admin.token_env or admin.tls.client_ca_file", admin.Listen)
	case token != nil && !admin.TLS.on() && toOthers(admin.Listen):
		l.warnf("admin.listen", "%s is open to other machines, and the token goes there in clear: set admin.tls", admin.Listen)
	}
}

// openToAll tells whether other machines reach an address of the operators' listener and nothing asks them who they are.
func openToAll(address string, admin AdminConfig) bool {
	return toOthers(address) && admin.TokenFile == "" && admin.TokenEnv == "" && admin.TLS.ClientCAFile == ""
}

// toOthers tells whether other machines reach an address. What is wrong with the address itself is said elsewhere.
func toOthers(address string) bool {
	at, good := validateListen(address, "admin.listen", new(problemList))
	return good && !loopback(at.host)
}
