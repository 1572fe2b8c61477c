package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "portico/upstream/transport"
)

// BenchmarkRead compares a read of 5 KB through the whole chain with one through net/http alone.
func BenchmarkRead(b *testing.B) {
	page := strings.Repeat("0123456789", 500)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })}
	l := listenAgain(b, "127.0.0.1:0")
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	stack := newStack(b, Options{Observer: &discard{}})
	bare := &http.Transport{DisableCompression: true}
	defer bare.CloseIdleConnections()
	for name, rt := range map[string]http.RoundTripper{"chain": stack, "bare": bare} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
				if _, body, err := do(rt, req); err != nil || len(body) != len(page) {
					b.Fatal(err, len(body))
				}
			}
		})
	}
}

type discard struct{}

func (*discard) Observe(Sample) {}
