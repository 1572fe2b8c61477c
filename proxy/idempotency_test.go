package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

const (
	createType       = `{"name":"n","description":"d","Bugzilla_api_key":"k","x":1,"y":2}`
	createAttachment = `{"data":"aGVsbG8=","file_name":"f","summary":"s","content_type":"text/plain","Bugzilla_api_key":"k"}`
)

// counting is a tracker that numbers what it creates. The outcome of the nth create may be another.
type counting struct {
	fakeTracker
	created atomic.Int64
}

func newCounting(outcome func(n int64) error) *counting {
	c := &counting{}
	c.do = func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
		if call.CreateFlagType == nil && call.CreateAttachment == nil {
			return success(call.Operation)
		}
		n := c.created.Add(1)
		if outcome != nil {
			if err := outcome(n); err != nil {
				return mapping.Reply{}, err
			}
		}
		return says(fmt.Sprintf(`{"id":%d}`, n))
	}
	return c
}

func TestIdempotencyKey(t *testing.T) {
	for _, c := range []struct{ name, path, body, otherBody, sameBody string }{
		{
			"flag type", "/rest/flag_type", createType, strings.Replace(createType, `"d"`, `"e"`, 1),
			`{ "y":2, "description": "d", "x":1, "Bugzilla_api_key":"k", "name":"n" }`,
		},
		{
			"attachment", "/rest/bug/5/attachment", createAttachment, strings.Replace(createAttachment, "aGVsbG8=", "aGVsbG9v", 1),
			strings.Replace(createAttachment, `"f"`, "\"f\"\n", 1),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracker := newCounting(nil)
			base := serve(t, proxy.Options{Tracker: tracker})
			post := func(path, body, key string) reply {
				t.Helper()
				return ask(t, "POST", base+path, body, "Idempotency-Key", key)
			}
			first := post(c.path, c.body, "one")
			for _, body := range []string{c.body, c.sameBody, strings.Replace(c.body, "Bugzilla_api_key", "api_key", 1)} {
				again := post(c.path, body, "one")
				if again.status != first.status || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("%s: %d %s %v, want %s", body, again.status, again.body, again.header, first.body)
				}
			}
			if first.status >= 300 || first.header.Get("Idempotent-Replayed") != "" || tracker.created.Load() != 1 {
				t.Errorf("first %d %v, %d were created", first.status, first.header, tracker.created.Load())
			}
			other := post(c.path, c.otherBody, "one")
			other.wantError(t, 422, "200422")
			if other.header.Get("Portico-Error") != "idempotency-mismatch" || tracker.created.Load() != 1 {
				t.Errorf("%v, %d were created", other.header, tracker.created.Load())
			}
			for i, fresh := range []reply{
				post(c.path, c.body, "two"),
				post(c.path, strings.Replace(c.body, `"k"`, `"another caller"`, 1), "one"),
				post(strings.Replace(c.path, "/rest", "/rest.cgi", 1), c.body, "one"),
				ask(t, "POST", base+c.path, c.body),
			} {
				if want := fmt.Sprintf(`{"id":%d}`, i+2); fresh.header.Get("Idempotent-Replayed") != "" || fresh.body != want {
					t.Errorf("request %d: %v %s, want %s", i, fresh.header, fresh.body, want)
				}
			}
		})
	}
}

// Some clients write the members of an object in another order each time, at every depth.
func TestIdempotencyKeyWhateverTheOrder(t *testing.T) {
	const plain = `{"Bugzilla_api_key":"k","data":"YQ==","file_name":"f","summary":"s","is_patch":true,`
	for _, c := range []struct {
		path, body, again string
		same              bool
	}{
		{"/rest/flag_type", `{"inclusions":{"P":["c"],"Q":["d"]},`, `{"inclusions":{"Q":["d"],"P":["c"]},`, true},
		{"/rest/flag_type", `{"exclusions":[{"P":["c"],"Q":["d"]}],`, `{"exclusions":[{"Q":["d"],"P":["c"]}],`, true},
		{"/rest/flag_type", `{"exclusions":{"P":["c"],"Q":["d"]},`, `{"exclusions":{"P":["d"],"Q":["c"]},`, false},
		{"/rest/flag_type", `{"inclusions":[],`, `{`, false},
		{"/rest/flag_type", `{"x_more":[{"a":1,"b":{"c":2,"d":"e"}}],`, `{"x_more":[ {"b":{"d":"\u0065","c":2},"a":1} ],`, true},
		{"/rest/bug/5/attachment", plain + `"x_more":{"a":1,"b":2}}`, plain + `"x_more":{"b":2,"a":1}}`, true},
		{"/rest/bug/5/attachment", plain + `"x_more":["a","b"]}`, plain + `"x_more":["b","a"]}`, false},
		{
			"/rest/bug/5/attachment", plain + `"flags":[{"name":"n","status":"?","x":{"a":1,"b":2}}]}`,
			plain + `"flags":[{"x":{"b":2,"a":1},"status":"?","name":"n"}]}`, true,
		},
	} {
		tracker := newCounting(nil)
		base := serve(t, proxy.Options{Tracker: tracker})
		if c.path == "/rest/flag_type" {
			c.body, c.again = c.body+createType[1:], c.again+createType[1:]
		}
		ask(t, "POST", base+c.path, c.body, "Idempotency-Key", "one").wantStatus(t, 201)
		again := ask(t, "POST", base+c.path, c.again, "Idempotency-Key", "one")
		if want := map[bool]int{true: 201, false: 422}[c.same]; again.status != want || tracker.created.Load() != 1 {
			t.Errorf("%s and %s: %d, %d were created", c.body, c.again, again.status, tracker.created.Load())
		}
	}
}

func TestIdempotencyKeysThatAreNone(t *testing.T) {
	tracker := newCounting(nil)
	base := serve(t, proxy.Options{Tracker: tracker})
	for _, header := range [][]string{
		{"Idempotency-Key", ""}, {"Idempotency-Key", "a b"}, {"Idempotency-Key", "ä"}, {"Idempotency-Key", strings.Repeat("x", 256)},
		{"Idempotency-Key", "a", "Idempotency-Key", "a"},
	} {
		ask(t, "POST", base+"/rest/flag_type", createType, header...).wantError(t, 400, "53")
	}
	ask(t, "PUT", base+"/rest/flag_type/1", `{"Bugzilla_api_key":"k","name":"n"}`, "Idempotency-Key", "a b").wantStatus(t, 200)
	if n := tracker.created.Load(); n != 0 {
		t.Errorf("%d were created", n)
	}
}

// What may have been carried out is never carried out again; what surely was not, is.
func TestIdempotencyKeyAfterFailures(t *testing.T) {
	refusal := func(code, status int, reason mapping.Reason, unknown bool) *mapping.Error {
		return &mapping.Error{Code: code, Status: status, Message: "m", Reason: reason, Unknown: unknown, RetryAfter: time.Second}
	}
	for _, c := range []struct {
		name    string
		err     error
		unknown bool
		again   bool
	}{
		{"refused by the tracker", refusal(106, 401, "", false), false, true},
		{"tracker limits callers", refusal(32610, 429, "", false), false, true},
		{"a web server limits callers", refusal(200429, 429, mapping.ReasonWebServer, false), false, true},
		{"breaker open", refusal(mapping.CodeUnavailable, 503, mapping.ReasonBreakerOpen, false), false, true},
		{"no connection", refusal(mapping.CodeBadGateway, 502, mapping.ReasonUnreachable, false), false, true},
		{"connection lost", refusal(mapping.CodeTimeout, 504, mapping.ReasonUnreachable, true), true, false},
		{"time is up", context.DeadlineExceeded, true, false},
		{"tracker failed inside", refusal(mapping.CodeTrackerFailure, 500, "", false), false, false},
		{"given up inside", context.Canceled, true, false},
		{"fault of Portico", errors.New("broken"), true, false},
		{"panic", nil, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracker := newCounting(func(n int64) error {
				if n == 1 && c.err == nil {
					panic("broken")
				}
				if n == 1 {
					return c.err
				}
				return nil
			})
			base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/flag_type"
			ask(t, "POST", base, createType, "Idempotency-Key", "one")
			again := ask(t, "POST", base, createType, "Idempotency-Key", "one")
			replayed := again.header.Get("Idempotent-Replayed") == "true"
			if c.again == replayed || (tracker.created.Load() == 2) != c.again || (again.status < 300) != c.again {
				t.Errorf("got %d %s %v, the tracker was asked %d times", again.status, again.body, again.header, tracker.created.Load())
			}
			if got := strings.HasSuffix(again.header.Get("Portico-Error"), "; outcome=unknown"); got != c.unknown {
				t.Errorf("unknown is %t: %v", got, again.header)
			}
		})
	}
}

// While the first create runs the second gets 409, and the first goes on when its client hangs up.
func TestIdempotencyKeyWhileRunning(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	tracker := newCounting(nil)
	create := tracker.do
	tracker.do = func(ctx context.Context, call upstream.Call) (mapping.Reply, error) {
		close(arrived)
		<-release
		select {
		case <-ctx.Done(): // as a real client of a tracker would
			return mapping.Reply{}, ctx.Err()
		case <-time.After(200 * time.Millisecond): // time for the server to see that its client is gone
			return create(ctx, call)
		}
	}
	watch, records := finishing()
	base := serve(t, proxy.Options{Tracker: tracker, Observer: watch}) + "/rest/flag_type"
	ctx, hangUp := context.WithCancel(t.Context())
	request := newRequest(t, "POST", base, strings.NewReader(createType)).WithContext(ctx)
	request.Header.Set("Idempotency-Key", "one")
	transport := &http.Transport{DisableKeepAlives: true}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := transport.RoundTrip(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}()
	<-arrived
	second := ask(t, "POST", base, createType, "Idempotency-Key", "one")
	second.wantError(t, 409, "200409")
	if second.header.Get("Portico-Error") != "idempotency-running" || second.header.Get("Retry-After") != "1" {
		t.Errorf("headers %v", second.header)
	}
	<-records
	hangUp()
	<-gone
	close(release)
	<-records
	third := ask(t, "POST", base, createType, "Idempotency-Key", "one")
	if third.status >= 300 || third.member(t, "id") != "1" || third.header.Get("Idempotent-Replayed") != "true" || tracker.created.Load() != 1 {
		t.Errorf("%d %s, the tracker was asked %d times", third.status, third.body, tracker.created.Load())
	}
}

// shelf is a ReplayStore that several processes could share. It forgets nothing.
type shelf struct {
	mu    sync.Mutex
	known map[[32]byte]upstream.IdempotencyRecord
}

func (s *shelf) Begin(_ context.Context, key, content [32]byte) (upstream.IdempotencyRecord, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[key]; ok {
		return known, false, nil
	}
	s.known[key] = upstream.IdempotencyRecord{Content: content, Running: true}
	return upstream.IdempotencyRecord{}, true, nil
}

func (s *shelf) End(_ context.Context, key [32]byte, outcome *upstream.IdempotencyRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = *outcome
}

// Servers that share a store and its secret share their records, as after a new start. With another secret they do not.
func TestReplaysAreSharedUnderOneSecret(t *testing.T) {
	tracker, store := newCounting(nil), &shelf{known: map[[32]byte]upstream.IdempotencyRecord{}}
	for _, c := range []struct {
		secret  string
		created int64
	}{{"one", 1}, {"one", 1}, {"other", 2}, {"one", 2}} {
		base := serve(t, proxy.Options{Tracker: tracker, Idempotency: proxy.NewIdempotency(store, []byte(c.secret))})
		ask(t, "POST", base+"/rest/flag_type", createType, "Idempotency-Key", "k").wantStatus(t, 201)
		if n := tracker.created.Load(); n != c.created {
			t.Errorf("with the secret %s there are %d, want %d", c.secret, n, c.created)
		}
	}
}

// What passes and may change flag types outlives its client and does not outlive the server.
func TestPassingChangeEndsWithTheServer(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	options := proxy.Options{Tracker: &fakeTracker{}, Passthrough: proxy.Passthrough{
		Prefixes:          []string{"/"},
		FlagTypesChanging: func(_ context.Context, call func() error) error { return call() },
		Target: proxy.Target{Base: &url.URL{Scheme: "http", Host: "tracker.example"}, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			close(begun)
			<-r.Context().Done()
			close(ended)
			return nil, r.Context().Err()
		})},
	}}
	serving, cut := context.WithCancel(t.Context())
	server := start(t, options, func(server *httptest.Server, _ *proxy.Server) {
		server.Config.BaseContext = func(net.Listener) context.Context { return serving }
		server.Config.ConnContext = upstream.WithServer
	})
	client := dial(t, server.URL)
	client.send(t, "POST /editflagtypes.cgi?action=insert HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\nContent-Length: 0\r\n\r\n")
	<-begun
	_ = client.Close()
	time.Sleep(50 * time.Millisecond) // in which the server notices
	select {
	case <-ended:
		t.Error("it ended with its client")
	default:
	}
	cut()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("it goes on without a server")
	}
}

// A create that outlives its client does not outlive the server. What became of it is then unknown, and stays so for the next Server, which a
// reload makes.
func TestKeyedCreateEndsWithTheServer(t *testing.T) {
	begun := make(chan struct{}, 1)
	tracker := &fakeTracker{do: func(ctx context.Context, _ upstream.Call) (mapping.Reply, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return mapping.Reply{}, ctx.Err()
	}}
	options := proxy.Options{Tracker: tracker, Idempotency: proxy.NewIdempotency(nil, nil)}
	serving, cut := context.WithCancel(t.Context())
	server := start(t, options, func(server *httptest.Server, _ *proxy.Server) {
		server.Config.BaseContext = func(net.Listener) context.Context { return serving }
		server.Config.ConnContext = upstream.WithServer
	})
	client := dial(t, server.URL)
	fmt.Fprintf(client, "POST /rest/flag_type HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: %d\r\n\r\n%s", len(createType), createType)
	<-begun
	cut()
	if got := client.response(t); got.status < 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
	again := ask(t, "POST", serve(t, options)+"/rest/flag_type", createType, "Idempotency-Key", "k")
	again.wantError(t, 504, "200504")
	if !strings.Contains(again.header.Get("Portico-Error"), "outcome=unknown") {
		t.Errorf("headers %v", again.header)
	}
}
