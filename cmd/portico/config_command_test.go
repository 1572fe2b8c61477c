package main

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portico/cmd/portico/config"
	"portico/test/process"
)

// withTracker is the minimum of a configuration.
const withTracker = "trackers: {main: {url: 'http://tracker.example/'}}\n"

// withTwo is the minimum of a configuration of two trackers; an addition begins in line 4.
const withTwo = "trackers: {a: {url: 'http://a.example/'}, b: {url: 'http://b.example/'}}\nprimary: a\ncandidate: b\n"

// writeFile writes a file in a temporary directory and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// texts renders problems without the directory of the file.
func texts(problems []config.Problem) []string {
	list := []string{}
	for _, p := range problems {
		origin, message, _ := strings.Cut(p.String(), ": ")
		list = append(list, filepath.Base(origin)+": "+message)
	}
	return list
}

// pemText encodes one block.
func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestTrackerBehindTLSWithOwnCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"version":"5.2, seen ` + r.TLS.PeerCertificates[0].Subject.CommonName + `"}`))
	}))
	cert, key := process.KeyPair(t)
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

// TestConfigCommandsPrint: example is the file of the project, schema is JSON that knows its keys, and print is what check --print shows.
func TestConfigCommandsPrint(t *testing.T) {
	file, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := portico(t, nil, "config", "example"); code != exitOK || stdout != string(file) || stderr != "" {
		t.Errorf("example: exit %d, %d bytes, want %d\n%s", code, len(stdout), len(file), stderr)
	}
	code, stdout, _ := portico(t, nil, "config", "schema")
	var schema struct {
		Properties map[string]struct{ Default any }
	}
	if err := json.Unmarshal([]byte(stdout), &schema); code != exitOK || err != nil || schema.Properties["responses"].Default != "tracker" {
		t.Errorf("schema: exit %d, %v\n%.300s", code, err, stdout)
	}
	url := "http://tracker.example/"
	environ := []string{"PORTICO_CACHE_REDIS=redis://me:hunter2@redis.example/", "PORTICO_LOG_LEVEL=warn"}
	code, stdout, _ = portico(t, environ, "config", "print", "--tracker", url)
	_, checked, _ := portico(t, environ, "check", "--print", "--tracker", url)
	if code != exitOK || stdout != checked || !strings.Contains(stdout, "level: warn # PORTICO_LOG_LEVEL") || strings.Contains(stdout, "hunter2") {
		t.Errorf("print: exit %d\n%s", code, stdout)
	}
	if code, _, stderr := portico(t, nil, "config", "print", "--config", writeFile(t, "c.yaml", "lisen: x\n")); code != exitFailed || !strings.Contains(stderr, "lisen") {
		t.Errorf("print of a file with mistakes: exit %d, %s", code, stderr)
	}
	if code, _, stderr := portico(t, nil, "config", "exampel"); code != exitUsage || !strings.Contains(stderr, `did you mean "example"?`) {
		t.Errorf("a wrong word: exit %d, %s", code, stderr)
	}
}
