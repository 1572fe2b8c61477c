package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// TestUnreadableResponses: a response that cannot be stored here is no fault of the tracker.
func TestUnreadableResponses(t *testing.T) {
	full := &jsonblob.BlobError{Op: "write", Err: errors.New("no space left on device")}
	broken := &jsonblob.SyntaxError{Kind: jsonblob.SyntaxEmpty}
	for err, want := range map[error]mapping.Reason{full: mapping.ReasonOverload, broken: mapping.ReasonBadResponse} {
		if failed := asError(err, false); failed.Reason != want || failed.Unknown {
			t.Errorf("%v: %+v", err, failed)
		}
		if failed := asError(err, true); !failed.Unknown {
			t.Errorf("%v: the outcome of the write counts as known", err)
		}
	}
}

// Every operation is routed by its method and path, and carried out.
func TestEveryOperationIsServed(t *testing.T) {
	for _, op := range mapping.Operations() {
		path := "/rest" + strings.NewReplacer("{", "", "}", "").Replace(op.Path())
		rc := (&Server{router: routes()}).newContext(httptest.NewRecorder(), httptest.NewRequest(op.Method(), path, nil))
		rc.path = path
		if got := rc.match()[op.Method()]; got != op {
			t.Errorf("%s %s is %q", op.Method(), path, got)
		}
		call, _, _ := rc.decode(op, "1", nil)
		if method, _ := call.Line(); method != op.Method() {
			t.Errorf("%s is not decoded", op)
		}
	}
}

// A thousand calls that wait would be a thousand goroutines more. All of them end with their requests.
func TestCallContextTakesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	var ends []func()
	for range 100 {
		rc := bare(t, mapping.OpAttachment, nil)
		rc.server.options.Timeout = time.Hour
		child, cancel := context.WithTimeout(context.WithValue(rc.beginCall(), &before, 1), time.Minute)
		defer cancel()
		ends = append(ends, func() {
			rc.close()
			<-child.Done()
			if !errors.Is(child.Err(), context.Canceled) || rc.liftDeadline() {
				t.Errorf("ended with %v, or the clock goes on", child.Err())
			}
		})
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("100 calls take %d goroutines", more)
	}
	for _, end := range ends {
		end()
	}
}

func caller(address string, credentials upstream.Credentials) upstream.Caller {
	return upstream.Caller{Address: address, Credentials: credentials}
}

func TestRatesPerCaller(t *testing.T) {
	rates := newCallerRates(RateLimits{Anonymous: Rate{PerSecond: 1, Burst: 2}, Keyed: Rate{PerSecond: 10, Burst: 3}})
	now := time.Now()
	anonymous, known := caller("192.0.2.1", upstream.Credentials{}), caller("192.0.2.9", upstream.Credentials{APIKey: "k"})
	for i, c := range []struct {
		later  time.Duration
		caller upstream.Caller
		wait   time.Duration
	}{
		{0, anonymous, 0},
		{0, anonymous, 0},
		{0, anonymous, time.Second},
		{0, anonymous, time.Second}, // a refused call costs nothing
		{0, caller("192.0.2.2", upstream.Credentials{}), 0},
		{0, known, 0},
		{0, known, 0},
		{0, known, 0},
		{0, known, 100 * time.Millisecond},
		{0, caller("192.0.2.9", upstream.Credentials{Authorization: "Bearer k", APIKey: "k"}), 100 * time.Millisecond},
		{0, caller("198.51.100.1", upstream.Credentials{APIKey: "k"}), 100 * time.Millisecond},
		{100 * time.Millisecond, known, 0},
		{0, caller("192.0.2.9", upstream.Credentials{APIKey: "other"}), 0},
		{900 * time.Millisecond, anonymous, 0},
		{0, caller("2001:db8::1", upstream.Credentials{}), 0},
		{0, caller("2001:db8::2", upstream.Credentials{}), 0},
		{0, caller("2001:db8::3", upstream.Credentials{}), time.Second},
		{0, caller("2001:db8:0:1::3", upstream.Credentials{}), 0},
	} {
		now = now.Add(c.later)
		got, unproven := rates.take(now, c.caller)
		if got.Round(time.Millisecond) != c.wait {
			t.Errorf("call %d waits %v, want %v", i, got, c.wait)
		}
		if unproven {
			rates.accept(c.caller)
		}
	}
}

func TestCallersAreBounded(t *testing.T) {
	c, prints, now := newCallLimiters(Rate{PerSecond: 1, Burst: 1}), upstream.NewFingerprints(nil), time.Now()
	first, through := prints.Of("first"), 0
	for i := range 2 * maxCallers {
		c.take(now, prints.Of(fmt.Sprint(i)))
		if c.take(now, first) == 0 {
			through++
		}
	}
	c.CleanUp()
	if size := c.EstimatedSize(); size > maxCallers {
		t.Errorf("%d are remembered", size)
	}
	if through != 1 {
		t.Errorf("a caller that never stopped calling was forgotten %d times", through-1)
	}
}

// TestAcceptedTwice: two calls of one caller may be accepted at the same time.
func TestAcceptedTwice(t *testing.T) {
	rates := newCallerRates(RateLimits{Keyed: Rate{PerSecond: 1, Burst: 1}})
	known, now := caller("192.0.2.1", upstream.Credentials{APIKey: "k"}), time.Now()
	rates.take(now, known)
	for range 3 {
		rates.accept(known)
	}
	if wait, unproven := rates.take(now, known); wait == 0 || unproven {
		t.Errorf("waits %v, unproven %v", wait, unproven)
	}
}

func TestRatesAreOffByDefault(t *testing.T) {
	if newCallerRates(RateLimits{Anonymous: Rate{Burst: 5}}) != nil {
		t.Error("a burst alone turned the limit on")
	}
}

// The oldest record gives way when the memory is full, but never that of a create that is running.
func TestIdempotencyRecordsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewIdempotency(nil, nil)
		prints := upstream.NewFingerprints(nil)
		begin := func(key string) (claimed bool, err error) {
			_, claimed, err = i.store.Begin(t.Context(), prints.Of(key), prints.Of("content"))
			time.Sleep(time.Millisecond)
			return claimed, err
		}
		end := func(key string) {
			i.store.End(t.Context(), prints.Of(key), &upstream.IdempotencyRecord{Body: []byte(key)})
		}
		want := func(key string, claimed bool) {
			t.Helper()
			if got, err := begin(key); got != claimed || err != nil {
				t.Errorf("%s: claimed %t, %v", key, got, err)
			}
		}
		for n := range maxIdempotencyRecords {
			want(strconv.Itoa(n), true)
		}
		if _, err := begin("more"); err == nil {
			t.Error("a running create gave way")
		}
		end("1")
		end("2")
		want("3", false)
		want("more", true) // 1, the oldest that is over, gives way
		want("2", false)
		i.store.End(t.Context(), prints.Of("more"), nil)
		want("more", true) // was given free
		end("more")
		time.Sleep(upstream.IdempotencyTime - time.Minute)
		want("2", false)
		time.Sleep(time.Minute)
		want("0", false) // still running, however old
		want("2", true)
		want("more", true)
		i.store.End(t.Context(), prints.Of("never begun"), nil)
	})
}

// Parameters become members in a time that grows with their number. With its square these would take minutes, and those that fit into one address
// a tenth of a second.
func TestManyParametersTakeLinearTime(t *testing.T) {
	var query parameters
	for i := range 150_000 {
		query = append(query, parameter{strconv.Itoa(i), "x"}, parameter{strconv.Itoa(i), "y"})
	}
	began := time.Now()
	members := override(query[:len(query)/2].members(true), query.members(false))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(members) != 150_000 || string(members[0].Value) != `"x"` || string(members[149_999].Value) != `"x"` {
		t.Errorf("%d members, the first is %s", len(members), members[0].Value)
	}
	small := parameters{{"b", "1"}, {"ids", "1"}, {"inclusions", "P"}, {"ids", "2"}, {"b", "2"}}
	if got := string(small.members(false).AppendJSON(nil)); got != `{"b":"1","ids":["1","2"],"inclusions":["P"]}` {
		t.Errorf("members %s", got)
	}
	if got := string(override(parameters{{"a", "1"}, {"b", "1"}}.members(false), small[:1].members(false)).AppendJSON(nil)); got != `{"a":"1","b":"1"}` {
		t.Errorf("overridden %s", got)
	}
}

// A form of nothing but separators costs no allocation for each of them.
func TestEmptyFormFieldsCostNothing(t *testing.T) {
	server, err := New(Options{Tracker: struct{ upstream.Tracker }{}})
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("&;", 10_000) + "name=n&&;=v"
	if allocated := testing.AllocsPerRun(1, func() {
		rc := &requestContext{server: server}
		members, err := rc.urlencoded(strings.NewReader(body))
		if text := string(members.AppendJSON(nil)); err != nil || text != `{"name":"n","":"v"}` {
			t.Errorf("%s, %v", text, err)
		}
	}); allocated > 1000 {
		t.Errorf("%g allocations for %d bytes", allocated, len(body))
	}
}

// drippingClient sends some bytes at once, and then a few every now and then until its time is over.
type drippingClient struct {
	*httptest.ResponseRecorder
	deadline   time.Time
	first, few int
	every      time.Duration
}

// SetReadDeadline is for an http.ResponseController.
func (d *drippingClient) SetReadDeadline(deadline time.Time) error {
	d.deadline = deadline
	return nil
}

// Close implements io.Closer.
func (d *drippingClient) Close() error { return nil }

// Read implements io.Reader.
func (d *drippingClient) Read(p []byte) (int, error) {
	if d.first > 0 {
		n := min(d.first, len(p))
		d.first -= n
		return n, nil
	}
	if left := time.Until(d.deadline); left < d.every {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(d.every)
	return d.few, nil
}

// A client that has sent much at once must go on: what has come of its body occupies memory or the disk.
func TestMuchAtOnceBuysLittleTime(t *testing.T) {
	for name, c := range map[string]struct {
		first, few int
		ended      bool
	}{
		"nothing at once": {0, 10, true}, "much at once": {10 << 20, 10, true}, "steady": {10 << 20, 10_000, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &drippingClient{ResponseRecorder: httptest.NewRecorder(), first: c.first, few: c.few, every: 20 * time.Second}
			w := newRecorder(client, time.Minute)
			r := w.watchBody(httptest.NewRequest("POST", "/", client), 30*time.Second)
			began := time.Now()
			_, err := io.CopyN(io.Discard, r.Body, int64(c.first+c.few*100))
			took := time.Since(began)
			if errors.Is(err, os.ErrDeadlineExceeded) != c.ended || c.ended && took > 3*time.Minute {
				t.Errorf("%s: it took %s, %v", name, took, err)
			}
		})
	}
}

// All that is taken for a body of many fields while a credential is looked for in it, most of it for a moment, is a small multiple of its size.
func TestLookingForCredentialsTakesLittleMemory(t *testing.T) {
	const field = "--x\r\n\r\n\r\n"
	for _, c := range []struct {
		kind, body string
		most       uint64
	}{
		{"application/x-www-form-urlencoded", strings.Repeat("a&", maxCredentialsAt/2) + "api_key=k", 36},
		{"application/x-www-form-urlencoded", strings.Repeat("api_key=k&", maxCredentialsAt/10), 16},
		{"multipart/form-data; boundary=x", strings.Repeat(field, maxCredentialsAt/len(field)) + "--x\r\nContent-Disposition: form-data; name=api_key\r\n\r\nk\r\n--x--", 400}, // nearly all by the race detector
		{"application/json", `{"a":[` + strings.Repeat("1,", maxCredentialsAt/2) + `1],"api_key":"k"}`, 16},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found := bodyCredentials(http.Header{"Content-Type": {c.kind}}, []byte(c.body))
		runtime.ReadMemStats(&after)
		if text, _ := mapping.Text(found.Get("api_key")); text != "k" {
			t.Errorf("%s: found %s", c.kind, found.AppendJSON(nil))
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > c.most*maxCredentialsAt {
			t.Errorf("%s, %.20q…: 1 MiB took %d MiB", c.kind, c.body, taken>>20)
		}
	}
}
