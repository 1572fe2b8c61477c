package cache

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	processes "portico/test/process"
)

// serves sees that answers are kept in this Redis and that a second process finds
// them there.
func serves(t *testing.T, form Redis) {
	t.Helper()
	f := &fakeTracker{}
	options := patient(Options{Tracker: "main", Redis: form})
	options.Redis.DialTimeout = 5 * time.Second
	a, b := settled(t, openCache(t, f, options)), settled(t, openCache(t, f, options))
	mustAsk(t, a, withKey("k"))
	if got := mustAsk(t, b, withKey("k")); !got.cache.Hit {
		t.Errorf("the other process says %+v", got.cache)
	}
	mustWrite(t, a, withKey("k"))
	if got := mustAsk(t, b, withKey("k")); !strings.Contains(got.text, f.now()) {
		t.Errorf("the other process gives %s", got.text)
	}
}

func parsed(t *testing.T, text string) Redis {
	t.Helper()
	r, err := ParseRedis(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFormsOfRedis are those of one server: a number of a database, a socket, a password, TLS.
func TestFormsOfRedis(t *testing.T) {
	t.Run("database", func(t *testing.T) {
		s := startServer(t)
		serves(t, parsed(t, "redis://"+s.addr+"/3"))
		if n := s.client.DBSize(context.Background()).Val(); n != 0 {
			t.Errorf("database 0 has %d keys, all should be in database 3", n)
		}
	})
	t.Run("socket", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		startServer(t, "--unixsocket", path)
		serves(t, parsed(t, "unix://"+path+"?db=2"))
	})
	t.Run("password", func(t *testing.T) {
		serves(t, parsed(t, "redis://:pass@"+startServer(t, "--requirepass", "pass").addr))
	})
	t.Run("TLS", func(t *testing.T) {
		dir := t.TempDir()
		roots, addr := certificate(t, dir), freeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		startServer(t, "--tls-port", port, "--tls-auth-clients", "no", "--tls-ca-cert-file", filepath.Join(dir, "cert.pem"),
			"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"))
		form := parsed(t, "rediss://"+addr)
		form.TLS.RootCAs = roots
		serves(t, form)
	})
}

// TestRedisUser shows which commands and keys a user needs.
func TestRedisUser(t *testing.T) {
	s := startServer(t)
	err := s.client.Do(context.Background(), "ACL", "SETUSER", "portico", "on", ">pass word", "~portico:*", "&portico:*",
		"-@all", "+get", "+mget", "+set", "+setnx", "+del", "+pexpire", "+pttl", "+incrby", "+eval", "+zadd", "+zcard", "+zrange",
		"+zpopmin", "+zremrangebyscore", "+publish", "+subscribe", "+hello", "+auth", "+select").Err()
	if err != nil {
		t.Fatal(err)
	}
	serves(t, parsed(t, "redis://portico:pass%20word@"+s.addr))
	c := openCache(t, &fakeTracker{}, Options{Redis: parsed(t, "redis://portico:wrong@"+s.addr)})
	if a := mustAsk(t, c, withKey("k")); a.cache.Detail != "redis-away" {
		t.Errorf("with a wrong password the answer says %+v", a.cache)
	}
}

// certificate writes a certificate for loopback and its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, _ := x509.MarshalPKCS8PrivateKey(key)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	parsed, _ := x509.ParseCertificate(der)
	roots.AddCert(parsed)
	return roots
}

func TestParseRedis(t *testing.T) {
	for text, want := range map[string]Redis{
		"embedded":                    {},
		"redis://h":                   {Addrs: []string{"h:6379"}},
		"redis://h:1/2":               {Addrs: []string{"h:1"}, DB: 2},
		"redis://u:p@[::1]:1":         {Addrs: []string{"[::1]:1"}, Username: "u", Password: "p"},
		"redis://:p%40@h?db=4":        {Addrs: []string{"h:6379"}, Password: "p@", DB: 4},
		"redis://h:1?cluster=true":    {Addrs: []string{"h:1"}, Cluster: true},
		"unix:///run/redis.sock?db=1": {Addrs: []string{"/run/redis.sock"}, DB: 1},
		"rediss://h":                  {Addrs: []string{"h:6379"}, TLS: &tls.Config{ServerName: "h"}},
	} {
		got := parsed(t, text)
		if (got.TLS != nil) != (want.TLS != nil) || got.TLS != nil && got.TLS.ServerName != want.TLS.ServerName {
			t.Errorf("%s: TLS %v", text, got.TLS)
		}
		got.TLS, want.TLS = nil, nil
		if strings.Join(got.Addrs, " ") != strings.Join(want.Addrs, " ") || got.DB != want.DB || got.Cluster != want.Cluster ||
			got.Username != want.Username || got.Password != want.Password {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestParseRedisRefuses(t *testing.T) {
	for _, text := range []string{
		"", "h:6379", "http://hush@h", "redis://", "redis://:hush@", "redis://u:hush@h/x", "redis://u:hush@h/-1",
		"redis://u:hush@h?dial_timeout=1s", "unix://u:hush@h/path", "unix://", "redis://u:hush@h:x", "redis://u:hush\x00@h",
		"redis://h?db=x", "redis://h?cluster=perhaps",
	} {
		if r, err := ParseRedis(text); err == nil {
			t.Errorf("%q is taken for %+v", text, r)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: the error shows the password: %s", text, err)
		}
	}
}

// TestReadsGoOnWithASlowRedis: whatever the delay is, no read takes much longer.
func TestReadsGoOnWithASlowRedis(t *testing.T) {
	for _, delay := range []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			s, f, p := startServer(t), &fakeTracker{}, newPace(t)
			proxy := processes.StartRelay(t, s.addr)
			options := impatient(on(s))
			options.Redis.Addrs = []string{proxy.Address}
			c := settled(t, openCache(t, f, options))
			p.ask(c, product)
			proxy.Delay.Store(int64(delay))
			for i := range 10 {
				p.ask(c, mapping.FlagTypesRequest{Product: "P", Component: string(rune('a' + i))})
				mustWrite(t, c, withKey("k"))
				if a := p.ask(c, product); !strings.Contains(a.text, f.now()) {
					t.Fatalf("after a write the read gives %s", a.text)
				}
			}
		})
	}
}
