package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"strings"
	"testing"
	"time"
)

// authority is a CA made for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// file holds its certificate.
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	a.file, _ = a.sign(t, a.cert)
	return a
}

// sign makes a key and a certificate for it, and gives their files. The first certificate is the authority's own.
func (a *authority) sign(t *testing.T, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "cert.pem", pemText("CERTIFICATE", der)), writeFile(t, "key.pem", pemText("PRIVATE KEY", private))
}

// issue makes a certificate for 127.0.0.1, or for a client, and gives its files.
func (a *authority) issue(t *testing.T, serial int64) (certFile, keyFile string) {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "portico"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// client trusts the authority and shows a certificate, if there is one.
func (a *authority) client(t *testing.T, certFile, keyFile string) *http.Client {
	t.Helper()
	settings, err := config.TLSFiles{CAFile: a.file, KeyPair: config.KeyPair{CertFile: certFile, KeyFile: keyFile}}.Client()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	return &http.Client{Transport: transport}
}

// serveConfig runs portico serve with a configuration until the test ends.
func serveConfig(t *testing.T, file string, environ ...string) (clients, operators string) {
	t.Helper()
	environ = append([]string{"PORTICO_TIMEOUTS_REDIS=10s"}, environ...) // a busy machine is no Redis that fails
	cfg, problems := config.Load(nil, environ, file)
	if config.Fatal(problems) {
		t.Fatal(texts(problems))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	started, ended := make(chan struct{}), make(chan error, 1)
	host := app.New(&log, cfg)
	host.Started = func(c, o *app.Listener, _ *app.Runtime) {
		clients, operators = c.Address(), o.Address()
		close(started)
	}
	go func() { ended <- host.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v\n%s", err, &log)
		}
	})
	select {
	case <-started:
		return clients, operators
	case err := <-ended:
		ended <- nil
		t.Fatalf("serve: %v\n%s", err, &log)
		return "", ""
	}
}

func TestListenersOverTLS(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer behind.Close()
	ca, strangers := newAuthority(t), newAuthority(t)
	cert, key := ca.issue(t, 2)
	mine, myKey := ca.issue(t, 3)
	foreign, foreignKey := strangers.issue(t, 4)
	const token = "sixteen bytes or more"
	file := writeFile(t, "c.yaml", "listen: 127.0.0.1:0\ntls: {cert_file: "+cert+", key_file: "+key+"}\n"+
		"admin: {listen: 127.0.0.1:0, token_env: TOKEN, tls: {cert_file: "+cert+", key_file: "+key+", client_ca_file: "+ca.file+"}}\n"+
		"trackers: {main: {url: '"+behind.URL+"', dialect: bugzilla-5}}\n")
	clients, operators := serveConfig(t, file, "TOKEN="+token)
	nobody, known, stranger := ca.client(t, "", ""), ca.client(t, mine, myKey), ca.client(t, foreign, foreignKey)
	for _, c := range []struct {
		name    string
		client  *http.Client
		address string
		header  []string
		want    string
	}{
		{"client", nobody, "https://" + clients + "/rest/version", nil, "HTTP/1.1 200 OK"},
		{"client that does not know the authority", strangers.client(t, "", ""), "https://" + clients + "/", nil, "unknown authority"},
		{"client without TLS", nobody, "http://" + clients + "/rest/version", nil, "HTTP/1.1 400 Bad Request"},
		{"health without anything", nobody, "https://" + operators + "/livez", nil, "HTTP/1.1 200 OK"},
		{"readiness without anything", nobody, "https://" + operators + "/readyz", nil, "HTTP/1.1 200 OK"},
		{"operator without anything", nobody, "https://" + operators + "/metrics", nil, "401"},
		{"operator with the token", nobody, "https://" + operators + "/metrics", []string{"Authorization", "Bearer " + token}, "HTTP/1.1 200 OK"},
		{"operator with another token", nobody, "https://" + operators + "/status", []string{"Authorization", "Bearer nonsense"}, "401"},
		{"operator with a certificate", known, "https://" + operators + "/status", nil, "HTTP/1.1 200 OK"},
		{"operator with a stranger's certificate", stranger, "https://" + operators + "/status", nil, "tls:"},
		{"stranger's certificate and health", stranger, "https://" + operators + "/livez", nil, "tls:"},
	} {
		got := ""
		if response, err := sendBy(t, c.client, http.MethodGet, c.address, "", c.header...); err != nil {
			got = err.Error()
		} else {
			got = response.Proto + " " + response.Status
			_ = response.Body.Close()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	tokenFile := writeFile(t, "token", token+"\n")
	for name, args := range map[string][]string{
		"token":       {"--token-file", tokenFile},
		"certificate": {"--cert-file", mine, "--key-file", myKey},
	} {
		args = append([]string{"cache", "purge", "--admin", "https://" + operators, "--ca-file", ca.file}, args...)
		if code, stdout, stderr := portico(t, nil, args...); code != exitOK || stdout != "Purged.\n" {
			t.Errorf("purge with a %s: exit %d %s%s", name, code, stdout, stderr)
		}
	}
	for want, args := range map[string][]string{
		"; use --token-file FILE, or --cert-file and --key-file\n":  nil,
		"; the token in --token-file is not that of the listener\n": {"--token-file", writeFile(t, "other", "another one, as long\n")},
	} {
		args = append([]string{"cache", "purge", "--admin", "https://" + operators, "--ca-file", ca.file}, args...)
		if code, _, stderr := portico(t, nil, args...); code != exitFailed || !strings.Contains(stderr, "401") || !strings.HasSuffix(stderr, want) {
			t.Errorf("purge without the token: exit %d %s", code, stderr)
		}
	}
}

// A renewed certificate comes in with a reload, and TLS does not go out by one.
func TestReloadBringsRenewedCertificates(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.issue(t, 2)
	const least = withTracker + "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"
	file := writeFile(t, "c.yaml", least+"tls: {cert_file: "+cert+", key_file: "+key+"}\n")
	process, at := startProcess(t, `"clients":"([^"]+)","operators":"([^"]+)"`, "serve", "--config", file)
	settings, err := config.TLSFiles{CAFile: ca.file}.Client()
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		connection, err := tls.Dial("tcp", at[0], settings)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Errorf("before: serial %d", got)
	}
	renewed, renewedKey := ca.issue(t, 7)
	copyFile(t, renewed, cert)
	copyFile(t, renewedKey, key)
	reload(t, process, "http://"+at[1])
	if got := serial(); got != 7 {
		t.Errorf("after: serial %d", got)
	}
	copyFile(t, writeFile(t, "plain.yaml", least), file)
	reload(t, process, "http://"+at[1])
	if got := serial(); got != 7 {
		t.Errorf("after a reload without TLS, which needs a restart: serial %d", got)
	}
	if status := get(t, "http://"+at[1]+"/status"); !strings.Contains(status, `"tls.cert_file"`) {
		t.Errorf("the status does not name the key that needs a restart:\n%s", status)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
