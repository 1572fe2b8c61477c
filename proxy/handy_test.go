package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// handyTracker is a fake cache: it has an answer at hand for every product but those whose name begins with New, and counts on
// which way it was asked. A context that has ended before the question is the short way's.
type handyTracker struct {
	fakeTracker
	short, long atomic.Int64
	before      func()
}

func (f *handyTracker) FlagTypes(ctx context.Context, _ upstream.Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	if ctx.Err() == nil {
		f.long.Add(1)
	} else {
		f.short.Add(1)
		if f.before != nil {
			f.before()
		}
		if strings.HasPrefix(request.Product, "New") {
			return mapping.FlagTypes{}, ctx.Err()
		}
	}
	if request.Product == "None" {
		return mapping.FlagTypes{}, mapping.Refuse(mapping.CodeUnknownField, "There is none.")
	}
	answer := document(`{"bug":[{"name":"` + request.Product + "/" + request.Component + `"}],"attachment":[]}`)
	answer.ETag = `"abc"`
	return mapping.FlagTypes{Document: answer, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

func (f *handyTracker) options() proxy.Options {
	return proxy.Options{Tracker: f, Revalidate: func(ctx context.Context) context.Context { return ctx }}
}

// kept is a connection that has had its first answer, so that the short way is open.
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
	return k.answer(t)
}

func (k *kept) answer(t *testing.T) reply {
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

// told gives everything of an answer that does not differ from one to the next.
func (r reply) told() string {
	for _, name := range []string{"Date", "X-Request-Id"} {
		if r.header.Get(name) == "" {
			return "no " + name
		}
		r.header.Del(name)
	}
	return fmt.Sprint(r.status, r.header, r.body)
}
