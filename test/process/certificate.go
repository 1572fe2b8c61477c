package process

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a CA made for one test.
type Authority struct {
	// File holds its certificate.
	File string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an Authority whose certificate is valid for an hour.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{cert: certificate(1, "test CA")}
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	a.File, _ = a.sign(t, a.cert)
	return a
}

// Issue makes a certificate for 127.0.0.1, or for a client, valid for an hour, and returns the files of the certificate and of its private
// key, which end with the test.
func (a *Authority) Issue(t testing.TB, serial int64) (certFile, keyFile string) {
	t.Helper()
	return a.sign(t, certificate(serial, "portico"))
}

// KeyPair is Issue for a certificate that is signed by itself.
func KeyPair(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	return (&Authority{cert: certificate(1, "portico")}).Issue(t, 1)
}

// EndedKeyPair is KeyPair for a certificate that was valid until the second of January 2020.
func EndedKeyPair(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	ended := certificate(1, "portico")
	ended.NotAfter = time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)
	return (&Authority{cert: ended}).sign(t, ended)
}

func certificate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// sign makes a key and a certificate for it. The first key is the authority's own.
func (a *Authority) sign(t testing.TB, template *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a.key == nil {
		a.key = key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private)
}
