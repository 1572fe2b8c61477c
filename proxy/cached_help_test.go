package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/proxy/fastpath"
	"portico/upstream"
)

// cachingTracker has a cached response for every product but those whose name begins with New, and counts how it was asked.
type cachingTracker struct {
	peeked, asked atomic.Int64
	before        func()
}

func (f *cachingTracker) Do(_ context.Context, _ upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	f.asked.Add(1)
	return f.read(*call.FlagTypes)
}

func (f *cachingTracker) Peek(_ context.Context, _ upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
	f.peeked.Add(1)
	if f.before != nil {
		f.before()
	}
	if strings.HasPrefix(request.Product, "New") {
		return mapping.Reply{}, upstream.ErrNotLocal
	}
	return f.read(request)
}

func (f *cachingTracker) read(request mapping.FlagTypesRequest) (mapping.Reply, error) {
	if request.Product == "None" {
		return mapping.Reply{}, mapping.Refuse(mapping.CodeUnknownField, "There is no such component.")
	}
	reply := document(`{"bug":[{"name":"` + request.Product + "/" + request.Component + `"}],"attachment":[]}`)
	reply.ETag = `"abc"`
	return mapping.Reply{Document: reply, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

func (f *cachingTracker) options() proxy.Options {
	return proxy.Options{Tracker: f}
}

// serveFast is serve with the fast path, and with a limit for idle connections.
func serveFast(t *testing.T, options proxy.Options, idle time.Duration) *httptest.Server {
	t.Helper()
	handler, err := proxy.New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener = proxy.Listener(fastpath.Listener(server.Listener, handler.MayServeAtOnce, handler.ServeAtOnce))
	server.Config.IdleTimeout = idle
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		proxy.ConnState(c, state)
		fastpath.ConnState(c, state)
	}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// kept is a connection that has had its first response, so that the fast path is open.
type kept struct {
	net.Conn
	reader *bufio.Reader
}

func keep(t *testing.T, base string) *kept {
	t.Helper()
	k := dial(t, base)
	k.exchange(t, "GET /rest/flag_type/First HTTP/1.1\r\nHost: x\r\n\r\n")
	time.Sleep(10 * time.Millisecond) // net/http may yet be listening for the client's hanging up
	return k
}

func dial(t *testing.T, base string) *kept {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &kept{conn, bufio.NewReader(conn)}
}

func (k *kept) exchange(t *testing.T, text string) reply {
	t.Helper()
	if _, err := io.WriteString(k, text); err != nil {
		t.Fatal(err)
	}
	return k.response(t)
}

func (k *kept) response(t *testing.T) reply {
	t.Helper()
	response, err := http.ReadResponse(k.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(body), response.ContentLength}
}

// told gives everything of a response that does not differ from one to the next.
func (r reply) told() string {
	for _, name := range []string{"Date", "X-Request-Id"} {
		if r.header.Get(name) == "" {
			return "no " + name
		}
		r.header.Del(name)
	}
	return fmt.Sprint(r.status, r.header, r.body)
}
