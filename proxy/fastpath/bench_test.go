package fastpath

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

var text = []byte(strings.Repeat("x", 2500))

// local has every response in memory.
type local struct{ upstream.Tracker }

func (local) Peek(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
	document := mapping.NewDocument(text)
	document.ETag = `"0123456789abcdef"`
	return mapping.Reply{Document: document, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

// BenchmarkCachedRead is what one cached read costs between the read and the write of its connection, with its log line in a file.
func BenchmarkCachedRead(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	server, err := proxy.New(proxy.Options{
		Tracker: local{}, Logger: slog.New(proxy.LogHandler(file, func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) })),
	})
	if err != nil {
		b.Fatal(err)
	}
	request := []byte("GET /rest/flag_type/TestProduct?Bugzilla_api_key=0123456789012345678901234567890123456789 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")
	f := newRequest().(*fastRequest)
	b.ReportAllocs()
	for b.Loop() {
		if !f.parse(request, "127.0.0.1:1234") || !server.ServeAtOnce(f, &f.request) || len(f.response()) < len(text) || f.status != 200 {
			b.Fatal(f.status)
		}
	}
}
