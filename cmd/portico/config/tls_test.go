package config

import (
	"strings"
	"testing"

	"portico/test/process"
)

// TestListenersAndFilesAreChecked: TLS files are read at the start, and the listener of operators is closed to other machines without a
// token or certificates.
func TestListenersAndFilesAreChecked(t *testing.T) {
	cert, key := process.KeyPair(t)
	_, otherKey := process.KeyPair(t)
	pair, junk := "cert_file: "+cert+", key_file: "+key, writeFile(t, "junk.pem", "no PEM here")
	tracker := func(more string) string { return "trackers: {main: {url: 'https://a/', " + more + "}}\n" }
	for _, c := range []struct{ name, yaml, want string }{
		{"open with TLS only", withTracker + "admin: {listen: ':9080', tls: {" + pair + "}}\n",
			"c.yaml:2:17: admin.listen: :9080 is open to other machines without authentication"},
		{"token in clear", withTracker + "admin: {listen: ':9080', token_env: TOKEN}\n",
			"c.yaml:2:17: warning: admin.listen: :9080 is open to other machines, and the token goes there in clear: set admin.tls"},
		{"token over TLS", withTracker + "admin: {listen: ':9080', token_env: TOKEN, tls: {" + pair + "}}\n", ""},
		{"client certificates", withTracker + "admin: {listen: ':9080', tls: {" + pair + ", client_ca_file: " + cert + "}}\n", ""},
		{"client certificates without TLS", withTracker + "admin: {tls: {client_ca_file: " + cert + "}}\n",
			"c.yaml:2:31: admin.tls.client_ca_file: needs cert_file and key_file: without TLS no client shows a certificate"},
		{"no token", withTracker + "admin: {listen: ':9080', token_env: NOTHING}\n", "c.yaml:2:37: admin.token_env: NOTHING holds nothing"},
		{"certificate alone", withTracker + "tls: {cert_file: " + cert + "}\n", "c.yaml:2:18: tls.cert_file: cert_file and key_file need each other"},
		{"key alone", withTracker + "admin: {tls: {key_file: " + key + "}}\n", "c.yaml:2:14: admin.tls.cert_file: cert_file and key_file need each other"},
		{"key of another", withTracker + "tls: {cert_file: " + cert + ", key_file: " + otherKey + "}\n",
			"c.yaml:2:18: tls.cert_file: reading the certificate: tls: private key does not match"},
		{"no authority", withTracker + "admin: {tls: {" + pair + ", client_ca_file: " + key + "}}\n", "admin.tls.client_ca_file: " + key + " holds no PEM certificate"},
		{"no authority of a tracker", tracker("ca_file: " + junk), "trackers.main.ca_file: " + junk + " holds no PEM certificate"},
		{"certificate alone for a tracker", tracker("cert_file: " + cert), "trackers.main.cert_file: cert_file and key_file need each other"},
		{"no certificate for a tracker", tracker("cert_file: " + junk + ", key_file: " + key), "trackers.main.cert_file: reading the certificate: tls: failed to"},
	} {
		_, problems := Load(nil, []string{"TOKEN=sixteen bytes or more"}, writeFile(t, "c.yaml", c.yaml))
		got := strings.Join(texts(problems), "\n")
		if !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRedissTurnsTLSOn(t *testing.T) {
	for url, want := range map[string]bool{"redis://a": false, "rediss://a": true} {
		r := Redis{URL: url}
		settings, err := r.Client()
		if err != nil || (settings != nil) != want {
			t.Errorf("%s: got %v, %v", url, settings, err)
		}
	}
}
