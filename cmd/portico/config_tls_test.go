package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// keyPair makes a self-signed client certificate and returns its files.
func keyPair(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "portico"},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile = writeFile(t, "cert.pem", pemText("CERTIFICATE", cert))
	return certFile, writeFile(t, "key.pem", pemText("PRIVATE KEY", private))
}

// pemText encodes one block.
func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestTrackerBehindTLSWithOwnCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"version":"5.2, seen ` + r.TLS.PeerCertificates[0].Subject.CommonName + `"}`))
	}))
	cert, key := keyPair(t)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := writeFile(t, "ca.pem", pemText("CERTIFICATE", server.Certificate().Raw))

	environ := []string{
		"PORTICO_TRACKERS_MAIN_CA_FILE=" + ca,
		"PORTICO_TRACKERS_MAIN_CERT_FILE=" + cert,
		"PORTICO_TRACKERS_MAIN_KEY_FILE=" + key,
	}
	code, stdout, stderr := portico(t, environ, "check", "--probe", "--tracker", server.URL)
	if code != exitOK || !strings.Contains(stdout, "version 5.2, seen portico") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ = portico(t, environ[1:], "check", "--probe", "--tracker", server.URL)
	if code != exitFailed || !strings.Contains(stdout, "certificate") {
		t.Errorf("without the CA: exit %d\n%s", code, stdout)
	}
}

func TestTLSFilesAreCheckedAtStart(t *testing.T) {
	cert, key := keyPair(t)
	junk := writeFile(t, "junk.pem", "no PEM here")
	for want, environ := range map[string][]string{
		"PORTICO_TRACKERS_MAIN_CA_FILE: trackers.main.ca_file: " + junk + " holds no PEM certificate":       {"PORTICO_TRACKERS_MAIN_CA_FILE=" + junk},
		"PORTICO_TRACKERS_MAIN_CERT_FILE: trackers.main.cert_file: cert_file and key_file need each other":  {"PORTICO_TRACKERS_MAIN_CERT_FILE=" + cert},
		"PORTICO_TRACKERS_MAIN_CERT_FILE: trackers.main.cert_file: reading the certificate: tls: failed to": {"PORTICO_TRACKERS_MAIN_CERT_FILE=" + junk, "PORTICO_TRACKERS_MAIN_KEY_FILE=" + key},
	} {
		_, problems := Load([]Setting{{"trackers.main.url", "https://a/", "--tracker"}}, environ, "")
		if got := strings.Join(texts(problems), "\n"); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRedissTurnsTLSOn(t *testing.T) {
	for url, want := range map[string]bool{"redis://a": false, "rediss://a": true} {
		r := RedisConfig{URL: url}
		settings, err := r.ClientTLS()
		if err != nil || (settings != nil) != want {
			t.Errorf("%s: got %v, %v", url, settings, err)
		}
	}
}
