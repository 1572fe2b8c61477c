package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sync/errgroup"

	"portico/cmd/portico/config"
	"portico/proxy"
	"portico/proxy/fastpath"
	"portico/upstream"
)

const (
	// descriptorShare is the part of the descriptors that the connections of one listener may take: a client connection may need
	// another descriptor for a connection to a tracker and one for a payload file, and the rest is for operators, Redis and the state.
	descriptorShare = 4
	// minWaiting is the time that every connection has to send a request before it may be closed for a new one.
	minWaiting = 250 * time.Millisecond
	// drainWaiting is how long a connection may be without a request once the listener drains.
	drainWaiting = 500 * time.Millisecond
)

// Listener is an HTTP server with its socket. It bounds the open connections: at the limit it closes the connection that has been without
// a request for the longest time, so that connections without requests cannot keep requests out. If all have one, Accept waits.
type Listener struct {
	net.Listener              // the socket
	served       net.Listener // this one, and what stands over it
	name         string
	limit        int
	logger       *slog.Logger
	server       *http.Server
	cut          context.CancelFunc // ends the requests that still run
	running      sync.Mutex         // held by Run

	closed  context.Context //nolint:containedctx // ends with Close
	end     context.CancelFunc
	changed chan struct{} // holds one signal: a connection was closed
	waiting atomic.Bool   // a new connection waits for capacity

	mu sync.Mutex // guards what follows
	// open has the connections, and since when each is without a request; zero while it has one.
	open map[net.Conn]time.Time
}

// Listen opens a socket, so that an address in use is an error at start. An inherited socket, which may be nil, counts more than the address.
// Drain closes it, also if Run was never called.
func Listen(socket net.Listener, name, address string, handler http.Handler, cfg config.Config, logger *slog.Logger) (_ *Listener, err error) {
	if socket == nil {
		if socket, err = new(net.ListenConfig).Listen(context.Background(), "tcp", address); err != nil {
			return nil, fmt.Errorf("listen for %s: %w; choose another address", name, err)
		}
	}
	l := &Listener{
		Listener: socket, name: name, limit: max(2, int(min(uint64(cfg.Limits.Connections), maxDescriptors()/descriptorShare))), logger: logger,
		changed: make(chan struct{}, 1), open: map[net.Conn]time.Time{},
	}
	life, cut := context.WithCancel(context.Background())
	l.served, l.cut = l, cut
	l.closed, l.end = context.WithCancel(context.Background())
	l.server = &http.Server{
		BaseContext:       func(net.Listener) context.Context { return life },
		ConnContext:       upstream.WithServer,
		ConnState:         l.connState,
		Handler:           l.lastResponses(handler),
		ReadHeaderTimeout: cfg.Timeouts.Header,
		IdleTimeout:       cfg.Timeouts.Idle,
		MaxHeaderBytes:    max(1, cfg.Limits.Header-4<<10), // net/http takes 4 KiB more
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		// That of net/http reads a body for as long as it takes, and keeps the connection open after one with Transfer-Encoding.
		DisableGeneralOptionsHandler: true,
	}
	l.server.RegisterOnShutdown(l.closeWaiting)
	return l, nil
}

// inheritedSockets returns the listening sockets that a service manager such as systemd has opened for this process, by name: client
// and admin. Such sockets stay open while the program is replaced, so that connections wait and are not refused.
func inheritedSockets() (map[string]net.Listener, error) {
	sockets := map[string]net.Listener{}
	for _, file := range activation.Files(true) {
		name := file.Name()
		if name != "client" && name != "admin" || sockets[name] != nil {
			return nil, fmt.Errorf("an inherited socket is named %q: pass at most one named client and one named admin (FileDescriptorName=)", name)
		}
		socket, err := net.FileListener(file) // has a descriptor of its own
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("take over the inherited socket %q: %w", name, err)
		}
		sockets[name] = socket
	}
	return sockets, nil
}

// Address is the host and port of the socket, also if the port was chosen by the system.
func (l *Listener) Address() string { return l.Addr().String() }

// URL is the base URL for clients without TLS.
func (l *Listener) URL() string { return "http://" + l.Address() }

// Run serves until Drain is called.
func (l *Listener) Run() error {
	l.running.Lock()
	defer l.running.Unlock()
	if err := l.server.Serve(l.served); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve %s: %w", l.name, err)
	}
	return nil
}

// RunUntil serves until ctx ends. Then running requests have some time to end.
func (l *Listener) RunUntil(ctx context.Context, limit time.Duration) error {
	serving, ended := errgroup.WithContext(ctx)
	serving.Go(l.Run)
	<-ended.Done()
	return errors.Join(drain(ctx, limit, l.logger, l), serving.Wait())
}

// drain closes listeners one after another, in a limited time altogether.
func drain(ctx context.Context, limit time.Duration, logger *slog.Logger, listeners ...*Listener) (failed error) {
	logger.Info("draining", "limit", limit.String())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for _, l := range listeners {
		failed = errors.Join(failed, l.Drain(ctx))
	}
	return failed
}

// Drain takes no more connections, and waits for running requests until ctx ends. Then it cuts them off, which is no error.
func (l *Listener) Drain(ctx context.Context) error {
	_ = l.Close()
	l.running.Lock()   // now all connections that were accepted are known
	l.running.Unlock() //nolint:staticcheck,gocritic // nothing is done with it
	// From Shutdown on net/http drops a request that it has just read. So each connection gets the response to its request before.
	l.awaitResponses(ctx)
	err := l.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		l.logger.Warn("requests that ran too long were cut off", "listener", l.name)
		err = nil
	}
	l.cut()
	// Some clients send a write again if its connection ends before the first byte of a response.
	l.awaitResponses(context.WithoutCancel(ctx))
	if err = errors.Join(err, l.server.Close()); err != nil {
		return fmt.Errorf("drain %s: %w", l.name, err)
	}
	return nil
}

// awaitResponses gives connections a while to send a request and to get the response.
func (l *Listener) awaitResponses(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainWaiting)
	defer cancel()
	for open, _ := l.load(); open > 0 && ctx.Err() == nil; open, _ = l.load() {
		select {
		case <-l.changed:
		case <-ctx.Done():
		}
	}
}

// closeWaiting closes the connections without a request, for whose first one Shutdown would wait 5 s. It must not be called before
// Shutdown: net/http would carry out a request that it reads meanwhile, and the response would be lost.
func (l *Listener) closeWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn, since := range l.open {
		if !since.IsZero() {
			_ = conn.Close() // the client waits for no response
		}
	}
}

// endsConnections reports whether responses end their connections: the listener is closed, or a new connection waits for capacity, which
// clients that send one request after the other would never leave to it.
func (l *Listener) endsConnections() bool { return l.closed.Err() != nil || l.waiting.Load() }

// lastResponses lets responses end their connections. SetKeepAlivesEnabled would do so too, but closes idle connections at once, even if a
// request is just being read from them.
func (l *Listener) lastResponses(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := lastResponse{w, l}
		next.ServeHTTP(last, r)
		last.end() // net/http sends a response without content later
	})
}

// lastResponse is a response that may be the last one of its connection.
type lastResponse struct {
	http.ResponseWriter
	listener *Listener
}

func (w lastResponse) end() {
	if w.listener.endsConnections() {
		w.Header().Set("Connection", "close")
	}
}

// Unwrap is for an http.ResponseController.
func (w lastResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w lastResponse) WriteHeader(status int) {
	w.end()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w lastResponse) Write(p []byte) (int, error) {
	w.end()
	return w.ResponseWriter.Write(p)
}

// Accept implements net.Listener. It waits until there is capacity for the connection.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for err == nil {
		wait := l.makeCapacity()
		if wait <= 0 {
			break
		}
		l.waiting.Store(true)
		select {
		case <-l.changed:
		case <-time.After(wait):
		case <-l.closed.Done():
			err = errors.Join(net.ErrClosed, conn.Close())
		}
	}
	l.waiting.Store(false)
	return conn, err
}

// Close implements net.Listener. It may be called again.
func (l *Listener) Close() error {
	l.end()
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// makeCapacity closes the longest waiting connection if there is no capacity for one more. If that has not waited long enough it
// returns the time until then. net/http takes a connection whose requests the fast path serves for idle.
func (l *Listener) makeCapacity() (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) < l.limit {
		return 0
	}
	var longest net.Conn
	begun := time.Now()
	for conn, since := range l.open {
		if used := fastpath.LastUsed(conn); !since.IsZero() && used.After(since) {
			since = used
		}
		if !since.IsZero() && since.Before(begun) {
			longest, begun = conn, since
		}
	}
	if wait = minWaiting - time.Since(begun); wait <= 0 {
		delete(l.open, longest)
		go longest.Close() // TLS may take seconds to tell the client
	}
	return wait
}

// connState is the hook of the http.Server. A connection that was closed for a new one is not known any more. A request that was read from
// it all the same is not carried out, since its client gets no response.
func (l *Listener) connState(conn net.Conn, state http.ConnState) {
	proxy.ConnState(conn, state)
	fastpath.ConnState(conn, state)
	if state == http.StateIdle {
		_ = conn.SetWriteDeadline(time.Time{}) // that of the last response
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.open[conn]
	switch {
	case state == http.StateNew, state == http.StateIdle && known:
		l.open[conn] = time.Now()
	case state == http.StateActive && !known:
		panic(http.ErrAbortHandler) // net/http recovers it, logs nothing and closes the connection
	case state == http.StateActive:
		l.open[conn] = time.Time{}
	case state == http.StateHijacked, state == http.StateClosed:
		delete(l.open, conn)
		select {
		case l.changed <- struct{}{}:
		default: // it is known already
		}
	}
}

// load returns the number of open connections, and of those that have a request.
func (l *Listener) load() (open, busy int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, since := range l.open {
		if since.IsZero() {
			busy++
		}
	}
	return len(l.open), busy
}
