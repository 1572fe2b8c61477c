package recording_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"portico/upstream/recording"
)

// TestSendHTTPS: a tracker behind https has to prove who it is.
func TestSendHTTPS(t *testing.T) {
	front := httptest.NewTLSServer(http.NotFoundHandler())
	defer front.Close()
	_, err := recording.Send(t.Context(), front.URL, recording.Request{Method: http.MethodGet, Path: "/"})
	if _, unproven := errors.AsType[*tls.CertificateVerificationError](err); !unproven {
		t.Errorf("got %v", err)
	}
}
