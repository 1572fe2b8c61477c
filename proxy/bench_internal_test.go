package proxy

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// atHand is a cache that has every answer.
type atHand struct{ upstream.Tracker }

var answerAtHand = []byte(strings.Repeat("x", 2500))

func (atHand) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	document := mapping.NewDocument(answerAtHand)
	document.ETag = `"0123456789abcdef"`
	return mapping.FlagTypes{Document: document, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

// BenchmarkShortWay is what one cached read costs between the read and the write of its connection.
func BenchmarkShortWay(b *testing.B) {
	server, err := New(Options{
		Tracker: atHand{}, Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		Revalidate: func(ctx context.Context) context.Context { return ctx },
	})
	if err != nil {
		b.Fatal(err)
	}
	text := []byte("GET /rest/flag_type/TestProduct?Bugzilla_api_key=0123456789012345678901234567890123456789 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")
	d := newDesks().Get().(*desk)
	b.ReportAllocs()
	for b.Loop() {
		server.ServeHTTP(d, d.open(text, "127.0.0.1:1234"))
		if len(d.sealed()) < len(answerAtHand) || d.status != 200 {
			b.Fatal(d.status, d.declined)
		}
	}
}
