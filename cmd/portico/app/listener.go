package app

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"portico/cmd/portico/config"
	"portico/proxy"
	"portico/proxy/fastpath"
)

const (
	// descriptorShare is the part of the descriptors that the connections of one listener may take: a client connection may need
	// another descriptor for a connection to a tracker and one for a payload file, and the rest is for operators, Redis and the state.
	descriptorShare = 4
	// minWaiting is the time that every connection has to send a request before it may be closed for a new one.
	minWaiting = 250 * time.Millisecond
	// drainWaiting is how long a connection may be without a request once the listener drains; Shutdown would wait 5 s.
	drainWaiting = 500 * time.Millisecond
)

// Listener is an HTTP server with its socket and a bounded number of connections.
type Listener struct {
	name   string
	socket net.Listener
	bound  *boundedListener // below socket
	server *http.Server
	logger *slog.Logger
	cut    context.CancelFunc // ends the requests that still run
	began  atomic.Bool        // Run was called
	ended  chan struct{}      // Run has returned
}

// Listen opens a socket, so that an address in use is an error at start. Close closes it, also if Run was never called.
func Listen(name, address string, handler http.Handler, cfg config.Config, logger *slog.Logger) (*Listener, error) {
	socket, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	return newListener(socket, name, handler, cfg, logger), nil
}

// newListener returns a Listener on an open socket.
func newListener(socket net.Listener, name string, handler http.Handler, cfg config.Config, logger *slog.Logger) *Listener {
	bound := newBoundedListener(socket, name, cfg.Limits.Connections, logger)
	life, cut := context.WithCancel(context.Background())
	return &Listener{name: name, socket: bound, bound: bound, logger: logger, cut: cut, ended: make(chan struct{}), server: &http.Server{
		BaseContext:       func(net.Listener) context.Context { return life },
		ConnContext:       proxy.ConnContext,
		ConnState:         bound.connState,
		Handler:           handler,
		ReadHeaderTimeout: cfg.Timeouts.Header,
		IdleTimeout:       cfg.Timeouts.Idle,
		MaxHeaderBytes:    int(cfg.Limits.Header),
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}}
}

// Address is the host and port of the socket, also if the port was chosen by the system.
func (l *Listener) Address() string { return l.bound.Addr().String() }

// URL is the base URL for clients without TLS.
func (l *Listener) URL() string { return "http://" + l.Address() }

// Run serves until Close is called.
func (l *Listener) Run() error {
	l.began.Store(true)
	defer close(l.ended)
	if err := l.server.Serve(l.socket); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve %s: %w", l.name, err)
	}
	return nil
}

// Close takes no more connections, and waits for running requests until ctx ends. Then it cuts them off, which is no error.
func (l *Listener) Close(ctx context.Context) error {
	defer l.cut()
	_ = l.socket.Close()
	// From Shutdown on net/http drops a request that it has just read. So each connection gets the response to its request before.
	l.server.SetKeepAlivesEnabled(false)
	if l.began.Load() {
		<-l.ended // all connections that were accepted are known
	}
	l.bound.awaitNone(ctx)
	l.bound.closeWaiting()
	err := l.server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		l.logger.Warn("requests that ran too long were cut off", "listener", l.name)
		err = nil
	}
	l.cut()
	if err = errors.Join(err, l.server.Close()); err != nil {
		return fmt.Errorf("drain %s: %w", l.name, err)
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
func drain(ctx context.Context, limit time.Duration, logger *slog.Logger, listeners ...*Listener) error {
	logger.Info("draining", "limit", limit.String())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var failed error
	for _, l := range listeners {
		failed = errors.Join(failed, l.Close(ctx))
	}
	return failed
}

// UntilSignal returns a context that ends at the first SIGTERM or interrupt. The second one ends the process at once. The caller calls
// stop; from then on signals have their usual effect.
func UntilSignal(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals, stopped := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		for again := false; ; again = true {
			select {
			case <-signals:
				if again {
					os.Exit(1)
				}
				cancel()
			case <-stopped:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(stopped)
		cancel()
	})
}

// boundedListener bounds the open connections of a server. At the limit it closes the connection that has been without a request for
// the longest time, so that connections without requests cannot keep requests out. If all have one, Accept waits.
type boundedListener struct {
	net.Listener
	name   string
	logger *slog.Logger
	limit  int
	scarce rate.Sometimes // bounds the log lines about the limit of open files

	changed chan struct{}   // holds one signal: open or waiting has changed
	running context.Context // until Close
	end     context.CancelFunc

	mu      sync.Mutex // guards what follows
	open    int        // without connections that are leaving
	all     map[net.Conn]*connection
	waiting list.List // of *connection without a request, the longest waiting first
}

// connection is what a boundedListener knows of one connection.
type connection struct {
	net.Conn
	element *list.Element // in waiting, nil if it has a request
	since   time.Time     // when it began to wait
	leaving bool          // it is being closed for a new one
}

func newBoundedListener(inner net.Listener, name string, limit int, logger *slog.Logger) *boundedListener {
	l := &boundedListener{
		Listener: inner, name: name, logger: logger, limit: max(2, int(min(uint64(limit), maxDescriptors()/descriptorShare))),
		scarce:  rate.Sometimes{Interval: time.Minute},
		changed: make(chan struct{}, 1), all: map[net.Conn]*connection{},
	}
	l.running, l.end = context.WithCancel(context.Background())
	return l
}

// Accept implements net.Listener. net/http repeats it after an error, and logs errors only where it logs those of clients.
func (l *boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		l.scarce.Do(func() {
			l.logger.Warn("no connections can be accepted: the limit of open files is reached", "listener", l.name, "cause", err)
		})
	}
	if err == nil && !l.waitForCapacity() {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	return conn, err
}

// Close implements net.Listener. It may be called again.
func (l *boundedListener) Close() error {
	l.end()
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// waitForCapacity waits until there is capacity for one more connection. It returns false when the listener was closed.
func (l *boundedListener) waitForCapacity() bool {
	for {
		free, wait := l.freeCapacity()
		if free {
			return true
		}
		select {
		case <-l.changed:
		case <-time.After(wait):
		case <-l.running.Done():
			return false
		}
	}
}

// freeCapacity reports whether there is capacity, and closes the longest waiting connection if there is none. If that has not waited long
// enough it returns the time until then.
func (l *boundedListener) freeCapacity() (free bool, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open < l.limit {
		return true, 0
	}
	longest := l.longestWaiting()
	if longest == nil {
		return false, minWaiting
	}
	if wait = minWaiting - time.Since(longest.since); wait > 0 {
		return false, wait
	}
	l.endWaiting(longest)
	longest.leaving = true
	l.open--
	go longest.Close() // TLS may take seconds to tell the client
	return true, 0
}

// longestWaiting returns the connection that has been without a request for the longest time, or nil. net/http takes a connection
// whose requests the fast path serves for idle.
func (l *boundedListener) longestWaiting() *connection {
	for range l.waiting.Len() {
		first := l.waiting.Front()
		c := first.Value.(*connection)
		used := fastpath.LastUsed(c.Conn)
		if !used.After(c.since) {
			return c
		}
		c.since = used
		l.waiting.MoveToBack(first)
	}
	if first := l.waiting.Front(); first != nil {
		return first.Value.(*connection)
	}
	return nil
}

// connState is the hook of the http.Server.
func (l *boundedListener) connState(conn net.Conn, state http.ConnState) {
	proxy.ConnState(conn, state)
	fastpath.ConnState(conn, state)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.all[conn]
	switch state {
	case http.StateNew:
		c = &connection{Conn: conn}
		l.all[conn] = c
		l.open++
		l.beginWaiting(c)
	case http.StateIdle:
		_ = conn.SetWriteDeadline(time.Time{}) // that of the last response
		l.beginWaiting(c)
	case http.StateActive:
		l.endWaiting(c)
	case http.StateHijacked, http.StateClosed:
		l.endWaiting(c)
		delete(l.all, conn)
		if !c.leaving {
			l.open--
		}
	}
	select {
	case l.changed <- struct{}{}:
	default: // it is known already
	}
}

// load returns the number of open connections, and of those that have a request.
func (l *boundedListener) load() (open, busy int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.open - l.waiting.Len()
}

func (l *boundedListener) beginWaiting(c *connection) {
	if !c.leaving {
		c.since = time.Now()
		c.element = l.waiting.PushBack(c)
	}
}

func (l *boundedListener) endWaiting(c *connection) {
	if c.element != nil {
		l.waiting.Remove(c.element)
		c.element = nil
	}
}

// awaitNone waits until no connection is open, at most for drainWaiting.
func (l *boundedListener) awaitNone(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainWaiting)
	defer cancel()
	for {
		l.mu.Lock()
		n := len(l.all)
		l.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			return
		}
	}
}

// closeWaiting closes the connections that have no request now.
func (l *boundedListener) closeWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for element := l.waiting.Front(); element != nil; element = element.Next() {
		_ = element.Value.(*connection).Close() // the client waits for no response
	}
}
