package process

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/tracker"
	"portico/upstream/bugzilla"
	"portico/upstream/transport"
)

// Reference makes a reference tracker that is closed when the test ends.
func Reference(t testing.TB, options tracker.Options) *tracker.Server {
	t.Helper()
	server := tracker.New(options)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Listen serves a handler until the test ends.
func Listen(t testing.TB, handler http.Handler) *url.URL {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// Client makes a client of a tracker over a transport, nil for a usual one.
func Client(t testing.TB, base *url.URL, via http.RoundTripper, dialect string) *bugzilla.Client {
	t.Helper()
	if via == nil {
		stack := transport.New(transport.Options{})
		t.Cleanup(stack.Close)
		via = stack
	}
	client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: dialect, Transport: via, Split: jsonblob.SplitOptions{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Text reads a document to its end and closes it. err is that of the call that gave it.
func Text(t testing.TB, document *mapping.Document, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	if _, err := document.WriteTo(&all); err != nil {
		t.Fatal(err)
	}
	if err := document.Close(); err != nil {
		t.Error(err)
	}
	return all.String()
}
