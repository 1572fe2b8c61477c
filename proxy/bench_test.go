package proxy_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/proxy/fastpath"
	"portico/upstream"
)

// benchBody ends in a way that the client recognises.
var benchBody = []byte(`{"bug":[{"name":"` + strings.Repeat("x", 1000) + `"}],"attachment":["END"]}`)

// benchTracker has flag types at hand, and in its cache if cached is set.
type benchTracker struct {
	upstream.Tracker
	cached bool
}

func (t benchTracker) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	reply := mapping.NewDocument(benchBody)
	reply.ETag = `"0123456789abcdef"`
	if !t.cached {
		return mapping.FlagTypes{Document: reply}, nil
	}
	return mapping.FlagTypes{Document: reply, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

func (t benchTracker) Peek(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	return t.FlagTypes(ctx, caller, request)
}

// BenchmarkRequests measures whole requests over loopback sockets. cpu-ns/op is the processor time of the server, the client and,
// for what passes through, a trivial tracker. plain is the least that net/http needs for such a response, and reverse is
// httputil.ReverseProxy.
func BenchmarkRequests(b *testing.B) {
	backend := benchBackend(b)
	base, err := url.Parse("http://" + backend)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	portico := func(cached bool) *proxy.Server {
		server, err := proxy.New(proxy.Options{
			Tracker: benchTracker{cached: cached}, Observer: admin.NewMetrics(), Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)),
			Passthrough: proxy.Passthrough{Target: proxy.Target{Base: base, Transport: transport}, Prefixes: []string{"/"}},
		})
		if err != nil {
			b.Fatal(err)
		}
		return server
	}
	const flagTypes, page = "/rest/flag_type/TestProduct?Bugzilla_api_key=0123456789012345678901234567890123456789", "/show_bug.cgi?id=1"
	b.Run("plain", func(b *testing.B) {
		benchRequests(b, flagTypes, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(benchBody) }), nil)
	})
	b.Run("reverse", func(b *testing.B) {
		benchRequests(b, page, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }, Transport: transport}, nil)
	})
	b.Run("passthrough", func(b *testing.B) { benchRequests(b, page, portico(false), nil) })
	b.Run("uncached", func(b *testing.B) { benchRequests(b, flagTypes, portico(false), nil) })
	b.Run("cached", func(b *testing.B) { benchRequests(b, flagTypes, portico(true), nil) })
	b.Run("fastpath", func(b *testing.B) { server := portico(true); benchRequests(b, flagTypes, server, server.ServeCached) })
}

// benchRequests sends requests over eight connections for each processor.
func benchRequests(b *testing.B, target string, handler http.Handler, fast fastpath.Handler) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := inner.Addr().String()
	if fast != nil {
		inner = fastpath.Listener(inner, fast)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, ConnContext: proxy.ConnContext,
		ConnState: func(c net.Conn, state http.ConnState) {
			proxy.ConnState(c, state)
			fastpath.ConnState(c, state)
		},
	}
	go func() { _ = server.Serve(proxy.Listener(inner)) }()
	defer server.Close()
	request := []byte("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: python-requests/2.31.0\r\n" +
		"Accept-Encoding: gzip, deflate\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n")
	b.ReportAllocs()
	b.SetParallelism(8)
	before := processorTime()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		for buffer := make([]byte, 64<<10); pb.Next(); {
			if err := benchExchange(conn, request, buffer); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}

func benchExchange(conn net.Conn, request, buffer []byte) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	for have := 0; !bytes.HasSuffix(buffer[:have], []byte(`"END"]}`)); {
		n, err := conn.Read(buffer[have:])
		if have += n; err != nil {
			return err
		}
	}
	return nil
}

// benchBackend is a tracker with one response, which costs next to nothing.
func benchBackend(b *testing.B) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	var response bytes.Buffer
	_ = (&http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/html; charset=UTF-8"}},
		ContentLength: int64(len(benchBody)), Body: io.NopCloser(bytes.NewReader(benchBody)),
	}).Write(&response)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for buffer := make([]byte, 64<<10); ; {
					n, err := conn.Read(buffer)
					if err != nil || !bytes.HasSuffix(buffer[:n], []byte("\r\n\r\n")) {
						return
					}
					if _, err := conn.Write(response.Bytes()); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
