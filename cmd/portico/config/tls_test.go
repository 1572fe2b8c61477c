package config

import (
	"strings"
	"testing"

	"portico/test/process"
)

func TestTLSFilesAreCheckedAtStart(t *testing.T) {
	cert, key := process.KeyPair(t)
	junk := writeFile(t, "junk.pem", "no PEM here")
	for want, environ := range map[string][]string{
		"PORTICO_TRACKERS_MAIN_CA_FILE: trackers.main.ca_file: " + junk + " holds no PEM certificate":       {"PORTICO_TRACKERS_MAIN_CA_FILE=" + junk},
		"PORTICO_TRACKERS_MAIN_CERT_FILE: trackers.main.cert_file: cert_file and key_file need each other":  {"PORTICO_TRACKERS_MAIN_CERT_FILE=" + cert},
		"PORTICO_TRACKERS_MAIN_CERT_FILE: trackers.main.cert_file: reading the certificate: tls: failed to": {"PORTICO_TRACKERS_MAIN_CERT_FILE=" + junk, "PORTICO_TRACKERS_MAIN_KEY_FILE=" + key},
		"PORTICO_ADMIN_TLS_CLIENT_CA_FILE: admin.tls.client_ca_file: needs cert_file and key_file: without": {"PORTICO_ADMIN_TLS_CLIENT_CA_FILE=" + cert},
	} {
		_, problems := Load([]Setting{{"trackers.main.url", "https://a/", "--tracker"}}, environ, "")
		if got := strings.Join(texts(problems), "\n"); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
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
