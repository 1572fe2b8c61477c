package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
	"portico/upstream/state"
	"portico/upstream/transport"
)

const least = "listen: 127.0.0.1:0\ntrackers: {main: {url: 'http://127.0.0.1:1/'}}\n"

var must = process.Must

// TestReload: keys about the log and the end take effect at a reload, those that need a restart are logged and in the status, problems have
// the form of the log, and the admin listener stays closed to other machines.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	load := func() (config.Config, []config.Problem, error) {
		return (&config.Flags{File: file}).Load([]string{"TOKEN=sixteen bytes or more"})
	}
	write(least + "admin: {listen: '0.0.0.0:0', token_env: TOKEN}\n")
	cfg, problems, _ := load()
	if config.Fatal(problems) {
		t.Fatal(problems)
	}
	var log process.Output
	s := New(&log, cfg)
	s.Reload = load
	must(t, s.start(t.Context()))
	t.Cleanup(func() {
		if err := errors.Join(drain(t.Context(), time.Second, s.logger, s.listeners...), s.Close()); err != nil {
			t.Error(err)
		}
	})
	const token = "admin: {listen: '0.0.0.0:0', token_env: TOKEN}\n"
	for _, tt := range []struct{ yaml, fails, log, needRestart string }{
		{token + "log: {level: debug}\ntimeouts: {drain: 3s, shutdown_delay: 2s}\n", "", "", ""},
		{token + "log: {format: text}\ntimeouts: {header: 3s, idle: 3s}\nlimits: {header: 8KiB}\nswitchover: {journal: {workers: 9}}\n", "",
			`"keys":["switchover.journal.workers","limits.header","timeouts.header","timeouts.idle","log.format"]`,
			"switchover.journal.workers limits.header timeouts.header timeouts.idle log.format"},
		{token + "trackers: {}\n", "problems; the first one: " + file + ":4:1: trackers: is set twice", `"level":"ERROR","msg":"the configuration has a problem","problem":"` + file + `:4:1: trackers: is set twice`, ""},
		{"admin: {listen: 127.0.0.1:0}\n", "reachable from other hosts", "", ""},
	} {
		before, said := s.current(), len(log.String())
		write(least + tt.yaml)
		err := s.rebuild(t.Context())
		told := log.String()[said:]
		if rt := s.current(); (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) || (rt == before) != (tt.fails != "") ||
			strings.Join(rt.status().NeedRestart, " ") != tt.needRestart && err == nil || !strings.Contains(told, tt.log) ||
			strings.Contains(told, "need a restart") != (tt.needRestart != "") {
			t.Errorf("%s: %v, the status has %q, and the log is\n%s", tt.yaml, err, rt.status().NeedRestart, told)
		}
		if at := s.level.Level(); (at == slog.LevelDebug) != strings.Contains(tt.yaml, "debug") && err == nil {
			t.Errorf("%s: the log is at %s", tt.yaml, at)
		}
		if timeouts := s.current().cfg.Timeouts; strings.Contains(tt.yaml, "drain") && (timeouts.Drain != 3*time.Second || timeouts.ShutdownDelay != 2*time.Second) {
			t.Errorf("the end has %+v", timeouts)
		}
	}
}

// TestSocketsOfClientsAndOperators: operators have a bound of their own, and neither socket stays open when the other one cannot be opened.
func TestSocketsOfClientsAndOperators(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen, cfg.Limits.Connections = "127.0.0.1:0", "127.0.0.1:0", 1000
	s := New(io.Discard, cfg)
	must(t, s.listen())
	if limit := s.listeners[1].limit; limit > maxOperatorConnections {
		t.Errorf("operators may have %d connections", limit)
	}
	must(t, drain(t.Context(), time.Second, s.logger, s.listeners...))
	cfg.Listen, cfg.Admin.Listen = s.listeners[0].Address(), taken.Addr().String()
	if err := New(io.Discard, cfg).Serve(t.Context()); err == nil {
		t.Error("the operators' address is taken, but it was opened")
	}
	again, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		t.Fatalf("the clients' socket is still open: %v", err)
	}
	again.Close()
}

// TestABodyWithoutAHandlerIsBounded: net/http itself reads the body of a request whose expectation it has refused. On the operators'
// listener such requests could keep health checks out.
func TestABodyWithoutAHandlerIsBounded(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen, cfg.Timeouts.Header = "127.0.0.1:0", "127.0.0.1:0", time.Second
	s := New(io.Discard, cfg)
	must(t, s.listen())
	for _, l := range s.listeners {
		ended := make(chan error, 1)
		go func() { ended <- l.Run() }()
		client, err := net.Dial("tcp", l.Address())
		must(t, err)
		must(t, client.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nContent-Length: 9\r\n\r\n")
		must(t, err)
		if text, err := io.ReadAll(client); err != nil || !strings.Contains(string(text), " 417 ") {
			t.Errorf("%s: %v %s", l.name, err, text)
		}
		must(t, errors.Join(client.Close(), l.Drain(t.Context()), <-ended))
	}
}

// bounded is a Listener for two connections.
func bounded(t *testing.T, log io.Writer) *Listener {
	t.Helper()
	cfg := config.Default()
	cfg.Limits.Connections = 2
	l, err := Listen(nil, "clients", "127.0.0.1:0", http.NotFoundHandler(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	return l
}

// A connection on which no request has come does not hold the drain up.
func TestSilentConnectionsAreClosed(t *testing.T) {
	var log strings.Builder
	l := bounded(t, &log)
	ended := make(chan error, 1)
	go func() { ended <- l.Run() }()
	client, err := net.Dial("tcp", l.Address())
	must(t, err)
	defer client.Close()
	response, err := http.Get(l.URL()) // connections are accepted in their order
	must(t, err)
	response.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than the five seconds of Shutdown
	defer cancel()
	if err := l.Drain(ctx); err != nil || log.Len() != 0 {
		t.Errorf("%v %s", err, log.String())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLastResponseEndsItsConnection: from the stop on, a response tells its client to send the next request elsewhere, so that none is
// dropped. A busy machine may not have begun to stop in time, so that one of several rounds is enough.
func TestLastResponseEndsItsConnection(t *testing.T) {
	for range 10 {
		var l *Listener
		var err error
		l, err = Listen(nil, "clients", "127.0.0.1:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			<-l.closed.Done()
			time.Sleep(drainWaiting / 4)
		}), config.Default(), slog.New(slog.DiscardHandler))
		must(t, err)
		ended, told := make(chan error, 1), make(chan bool, 1)
		go func() { ended <- l.Run() }()
		go func() {
			response, err := (&http.Client{Transport: &http.Transport{}}).Get(l.URL())
			told <- err == nil && response.Close
		}()
		for _, busy := l.load(); busy == 0; _, busy = l.load() {
			time.Sleep(time.Millisecond)
		}
		must(t, errors.Join(l.Drain(t.Context()), <-ended))
		if <-told {
			return
		}
	}
	t.Error("no response said that its connection ends")
}

// TestCutOffRequestGetsAResponse: a client that gets no byte may send a write again. A busy machine may be too slow for that, so that one of
// several rounds is enough.
func TestCutOffRequestGetsAResponse(t *testing.T) {
	for range 10 {
		l, err := Listen(nil, "clients", "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(drainWaiting / 50)
			w.WriteHeader(http.StatusGatewayTimeout)
		}), config.Default(), slog.New(slog.DiscardHandler))
		must(t, err)
		ended, told := make(chan error, 1), make(chan bool, 1)
		go func() { ended <- l.Run() }()
		go func() {
			response, err := (&http.Client{Transport: &http.Transport{}}).Post(l.URL(), "text/plain", strings.NewReader("content"))
			told <- err == nil && response.StatusCode == http.StatusGatewayTimeout
		}()
		for _, busy := l.load(); busy == 0; _, busy = l.load() {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		must(t, errors.Join(l.Drain(ctx), <-ended))
		if cancel(); <-told {
			return
		}
	}
	t.Error("no request that was cut off got a response")
}

// TestIdleConnectionGetsOneMoreResponse: a request that comes on an idle connection just after the stop gets a response, which is the last
// one. A busy machine may be too slow for that, so that one of several rounds is enough.
func TestIdleConnectionGetsOneMoreResponse(t *testing.T) {
	for range 10 {
		l, err := Listen(nil, "clients", "127.0.0.1:0", http.NotFoundHandler(), config.Default(), slog.New(slog.DiscardHandler))
		must(t, err)
		ended := make(chan error, 2)
		go func() { ended <- l.Run() }()
		client := &http.Client{Transport: &http.Transport{}}
		ask := func() (*http.Response, error) { // net/http would send a request without a body again
			return client.Post(l.URL(), "text/plain", strings.NewReader("content"))
		}
		first, err := ask()
		must(t, err)
		_, err = io.Copy(io.Discard, first.Body)
		must(t, errors.Join(err, first.Body.Close()))
		go func() { ended <- l.Drain(t.Context()) }()
		<-l.closed.Done()
		time.Sleep(drainWaiting / 10)
		second, err := ask()
		must(t, errors.Join(<-ended, <-ended))
		if err == nil && second.Close {
			return
		}
	}
	t.Error("no request on an idle connection got a last response")
}

// At the limit the connection that has waited for the longest time gives way, but not before it had time to send a request.
func TestLongestWaitingGivesWay(t *testing.T) {
	l := bounded(t, io.Discard)
	defer l.Close()
	var ours, clients [3]net.Conn
	for i := range ours {
		ours[i], clients[i] = net.Pipe()
		defer clients[i].Close()
	}
	l.connState(ours[0], http.StateNew)
	l.connState(ours[1], http.StateNew)
	if wait := l.makeCapacity(); wait <= 0 || wait > minWaiting {
		t.Errorf("connections that have just come; capacity after %v", wait)
	}
	l.open[ours[0]], l.open[ours[1]] = time.Now().Add(-minWaiting), time.Now().Add(-2*minWaiting)
	if wait := l.makeCapacity(); wait > 0 {
		t.Error("no connection without a request gives way")
	}
	if _, err := clients[1].Read(make([]byte, 1)); err == nil {
		t.Error("it is still open")
	}
	l.connState(ours[1], http.StateIdle) // its last request ended meanwhile
	l.connState(ours[1], http.StateClosed)
	l.connState(ours[2], http.StateNew)
	l.connState(ours[2], http.StateActive)
	l.connState(ours[0], http.StateActive)
	if wait := l.makeCapacity(); wait < minWaiting/2 {
		t.Errorf("two connections with requests; capacity after %v", wait)
	}
	if open, busy := l.load(); open != 2 || busy != 2 {
		t.Errorf("%d are open and %d have a request", open, busy)
	}
	l.connState(ours[0], http.StateClosed)
	l.connState(ours[2], http.StateHijacked)
	if open, _ := l.load(); open != 0 {
		t.Errorf("at the end %d are open", open)
	}
}

// TestBusyClientsLeaveRoom: where a new connection waits, clients that send one request after the other do not keep theirs.
func TestBusyClientsLeaveRoom(t *testing.T) {
	l := bounded(t, io.Discard)
	crowded := make(chan struct{})
	l.server.Handler = l.lastResponses(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-crowded }))
	ended, kept := make(chan error, 1), make(chan bool, 2)
	go func() { ended <- l.Run() }()
	for range l.limit {
		go func() {
			response, err := (&http.Client{Transport: &http.Transport{}}).Get(l.URL())
			kept <- err != nil || !response.Close
		}()
	}
	for _, busy := l.load(); busy < l.limit; _, busy = l.load() {
		time.Sleep(time.Millisecond)
	}
	another, err := net.Dial("tcp", l.Address())
	must(t, err)
	defer another.Close()
	for !l.waiting.Load() {
		time.Sleep(time.Millisecond)
	}
	close(crowded)
	if first, second := <-kept, <-kept; first && second {
		t.Error("no connection ends although another one waits")
	}
	must(t, errors.Join(l.Drain(t.Context()), <-ended))
}

// lateConn is a connection whose second request takes its time to be read.
type lateConn struct {
	net.Conn
	arrived chan struct{} // closed when the request is there
	release chan struct{} // closed when it may be read
}

// Read implements net.Conn.
func (c *lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("/late")) { // net/http may have read the first byte already
		close(c.arrived)
		<-c.release
	}
	return n, err
}

// lateListener makes the first connection a lateConn.
type lateListener struct {
	net.Listener
	conn *lateConn
}

// Accept implements net.Listener.
func (l *lateListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || l.conn.Conn != nil {
		return conn, err
	}
	l.conn.Conn = conn
	return l.conn, nil
}

// TestRequestOfClosedConnectionIsNotCarriedOut: a connection may be closed for a new one while its request is being read.
func TestRequestOfClosedConnectionIsNotCarriedOut(t *testing.T) {
	l := bounded(t, io.Discard)
	late := &lateConn{arrived: make(chan struct{}), release: make(chan struct{})}
	l.Listener = &lateListener{l.Listener, late}
	carriedOut := make(chan string, 5)
	l.server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carriedOut <- r.URL.Path })
	ended := make(chan error, 1)
	go func() { ended <- l.Run() }()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Address())
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn, path string) {
		_, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: portico.example\r\nContent-Length: 0\r\n\r\n")
		must(t, err)
	}
	client := dial()
	ask(client, "/first")
	<-carriedOut
	_, err := client.Read(make([]byte, 1000))
	must(t, err)
	ask(client, "/late")
	<-late.arrived
	dial()          // takes the second place
	third := dial() // closes the connection of the client
	ask(third, "/third")
	<-carriedOut
	close(late.release)
	must(t, errors.Join(l.Drain(t.Context()), <-ended))
	if len(carriedOut) > 0 {
		t.Error("the request was carried out, and its client got no response: ", <-carriedOut)
	}
}

// A connection that waits for capacity when the listener is closed is closed too.
func TestClosedListenerKeepsNoConnection(t *testing.T) {
	l := bounded(t, io.Discard)
	for range l.limit {
		ours, client := net.Pipe()
		defer client.Close()
		l.connState(ours, http.StateNew)
		l.connState(ours, http.StateActive)
	}
	client, err := net.Dial("tcp", l.Address())
	must(t, err)
	defer client.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("Accept does not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept gives %v", err)
	}
	must(t, client.SetReadDeadline(time.Now().Add(5*time.Second)))
	if _, err := client.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

// The write deadline of one response does not hold for the next one.
func TestIdleConnectionHasNoWriteDeadline(t *testing.T) {
	l := bounded(t, io.Discard)
	defer l.Close()
	ours, client := net.Pipe()
	defer ours.Close()
	defer client.Close()
	must(t, ours.SetWriteDeadline(time.Now().Add(-time.Second)))
	l.connState(ours, http.StateIdle)
	go func() { _, _ = client.Read(make([]byte, 1)) }()
	if _, err := ours.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// openRecords keeps records in a new store.
func openRecords(t *testing.T) *idempotencyRecords {
	t.Helper()
	store, err := state.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "p.db"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return &idempotencyRecords{store: store, now: time.Now, logger: slog.New(slog.DiscardHandler)}
}

// TestCreatesAreRemembered: what became of creates is known, and one whose process has ended, or whose outcome could not be stored, is not
// carried out again.
func TestCreatesAreRemembered(t *testing.T) {
	now, content := time.Now(), sha256.Sum256([]byte("content"))
	records := openRecords(t)
	records.now = func() time.Time { return now }
	begin := func(name string) (upstream.IdempotencyRecord, bool) {
		t.Helper()
		known, claimed, err := records.Begin(t.Context(), sha256.Sum256([]byte(name)), content)
		must(t, err)
		return known, claimed
	}
	unwritable, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]func(key [sha256.Size]byte){
		"done": func(key [sha256.Size]byte) {
			records.End(t.Context(), key, &upstream.IdempotencyRecord{Content: content, Body: []byte(`{"id":1}`)})
		},
		"lost": func(key [sha256.Size]byte) {
			records.End(unwritable, key, &upstream.IdempotencyRecord{Content: content, Body: []byte(`{"id":1}`)})
		},
		"failed": func(key [sha256.Size]byte) {
			records.End(t.Context(), key, &upstream.IdempotencyRecord{Content: content, Failed: &mapping.Error{Code: 1, Status: 500, Unknown: true, Err: io.ErrUnexpectedEOF}})
		},
		"freed":   func(key [sha256.Size]byte) { records.End(t.Context(), key, nil) },
		"running": func([sha256.Size]byte) {},
	} {
		if _, claimed := begin(name); !claimed {
			t.Errorf("%s is claimed already", name)
		}
		end(sha256.Sum256([]byte(name)))
	}
	if known, claimed := begin("done"); claimed || string(known.Body) != `{"id":1}` || known.Content != content {
		t.Errorf("what was done is known as %+v", known)
	}
	if known, claimed := begin("failed"); claimed || known.Failed == nil || !known.Failed.Unknown {
		t.Errorf("what failed is known as %+v", known)
	}
	if _, claimed := begin("freed"); !claimed {
		t.Error("what was given free is claimed")
	}
	for _, name := range []string{"running", "lost"} {
		if known, claimed := begin(name); claimed || !known.Running || known.Failed != nil {
			t.Errorf("%s is known as %+v", name, known)
		}
	}
	now = now.Add(2 * abandonedAfter)
	for _, name := range []string{"running", "lost"} {
		if known, claimed := begin(name); claimed || known.Running || known.Failed == nil || !known.Failed.Unknown {
			t.Errorf("later %s is known as %+v", name, known)
		}
	}
	_ = records.store.Close()
	_, _, err := records.Begin(t.Context(), content, content)
	if said, ok := errors.AsType[*mapping.Error](err); !ok || said.Status != 503 {
		t.Errorf("without a store a create is answered %v", err)
	}
	records.End(t.Context(), content, nil) // has nothing to tell and does not panic
}

// A create that runs for long is not abandoned as long as its process lives.
func TestHeartbeat(t *testing.T) {
	records, key := openRecords(t), sha256.Sum256([]byte("key"))
	if _, claimed, err := records.Begin(t.Context(), key, key); !claimed || err != nil {
		t.Fatal(claimed, err)
	}
	before, _, err := records.store.BeginCreate(t.Context(), key, key)
	must(t, err)
	beat, _ := records.beats.Load(key)
	next := beat.(*time.Timer)
	next.Stop()
	if records.heartbeat(key); !next.Stop() {
		t.Error("the heartbeat is the last one")
	}
	after, _, err := records.store.BeginCreate(t.Context(), key, key)
	if err != nil || !after.Since.After(before.Since) {
		t.Errorf("the create is known since %v, and after a heartbeat since %v (%v)", before.Since, after.Since, err)
	}
	records.End(t.Context(), key, nil)
	if _, running := records.beats.Load(key); running {
		t.Error("there are heartbeats although no create is running")
	}
}

// TestCanceledCallIsNoError: the client has gone, so the span of the call does not count as failed.
func TestCanceledCallIsNoError(t *testing.T) {
	for reason, want := range map[transport.Reason]codes.Code{"": codes.Unset, transport.Canceled: codes.Unset, transport.BadResponse: codes.Error} {
		recorder := tracetest.NewSpanRecorder()
		_, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "call")
		callSpan{span}.Observe(transport.Sample{Tries: 1, Reason: reason})
		if got := recorder.Ended()[0].Status().Code; got != want {
			t.Errorf("reason %q: %v, want %v", reason, got, want)
		}
	}
}
