package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"portico/proxy"
)

// listener is one HTTP server with its socket.
type listener struct {
	name   string
	socket net.Listener
	server *http.Server
	logger *slog.Logger
	// silent are connections on which no request has come yet.
	silent *silent
	// cut ends what still runs.
	cut context.CancelFunc
}

// listen opens the socket, so that a taken address is an error at start.
func listen(name, address string, handler http.Handler, cfg Config, logger *slog.Logger) (*listener, error) {
	socket, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	lasting, cut := context.WithCancel(context.Background())
	quiet := &silent{open: map[net.Conn]struct{}{}}
	return &listener{
		name:   name,
		socket: &scarceListener{Listener: socket, name: name, logger: logger},
		logger: logger,
		silent: quiet,
		cut:    cut,
		server: &http.Server{
			BaseContext:       func(net.Listener) context.Context { return proxy.Lasting(lasting) },
			ConnState:         quiet.connState,
			Handler:           handler,
			Protocols:         &protocols,
			ReadHeaderTimeout: cfg.Timeouts.Header,
			IdleTimeout:       cfg.Timeouts.Idle,
			MaxHeaderBytes:    int(cfg.Limits.Header),
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		},
	}, nil
}

// address is where the socket listens in fact, which matters for port 0.
func (l *listener) address() string { return l.socket.Addr().String() }

// run serves until the server is shut down.
func (l *listener) run() error {
	if err := l.server.Serve(l.socket); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.name, err)
	}
	return nil
}

// close waits for running requests as long as ctx lasts and then cuts them off,
// which is what the limit is for and no failure.
func (l *listener) close(ctx context.Context) error {
	defer l.cut()
	closing := time.AfterFunc(silence, l.silent.close)
	defer closing.Stop()
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

// silence is how long a connection may be without a request once the program stops.
// Shutdown itself would wait five seconds for it.
const silence = 500 * time.Millisecond

// silent are connections whose first request has not come yet.
type silent struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// connState is the hook of an http.Server.
func (s *silent) connState(c net.Conn, state http.ConnState) {
	proxy.ConnState(c, state)
	if state == http.StateIdle {
		_ = c.SetWriteDeadline(time.Time{}) // the last answer's must not outlive it
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew {
		s.open[c] = struct{}{}
		return
	}
	delete(s.open, c)
}

// close closes those that are silent now.
func (s *silent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close() // nobody is left to tell
	}
}

// errSignal is why a context ended that untilSignal gave.
var errSignal = errors.New("a signal came")

// untilSignal gives a context that ends at the first SIGTERM or interrupt. At
// the second the process ends at once, because somebody is in a hurry.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	var once sync.Once
	stopped := make(chan struct{})
	stop := func() {
		once.Do(func() { signal.Stop(signals); close(stopped) })
		cancel(nil)
	}
	go func() {
		select {
		case <-signals:
			cancel(errSignal)
		case <-stopped:
			return
		}
		select {
		case <-signals:
			os.Exit(exitFailed)
		case <-stopped:
		}
	}()
	return ctx, stop
}

// program is everything that runs in one process until it is told to stop.
type program struct {
	logger    *slog.Logger
	listeners []*listener
	// draining is told first, so that load balancers turn away in time; they
	// have delay for it, where nil is none.
	draining func()
	delay    func() time.Duration
	// background are goroutines that end with the context of run.
	background sync.WaitGroup
	// closers end what the handlers use, last opened first.
	closers []func()
}

// run serves on all listeners until ctx, which stop ends, is over or one fails. What runs
// then has limit to end. After a signal untilSignal goes on waiting for the second one: what a
// shell started in the background would ignore an interrupt.
// The first listener is drained first; the operators' own stays up meanwhile.
func (p *program) run(ctx context.Context, limit func() time.Duration, stop func()) error {
	failed := make(chan error, len(p.listeners))
	var running sync.WaitGroup
	for _, l := range p.listeners {
		running.Go(func() { failed <- l.run() })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		p.delay = nil // there is nobody to wait for
	}
	if !errors.Is(context.Cause(ctx), errSignal) {
		stop() // from here on the first signal has its usual effect
	}
	err = errors.Join(err, p.turnAway(failed))
	drain := limit()
	p.logger.Info("draining", "limit", drain)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, l := range p.listeners {
		err = errors.Join(err, l.close(ending))
	}
	running.Wait()
	p.close()
	p.logger.Info("stopped")
	return err
}

// turnAway says that nobody should be sent here any more, and goes on serving those
// who come nevertheless until everybody must have heard.
func (p *program) turnAway(failed <-chan error) error {
	p.draining()
	p.background.Wait()
	p.draining() // a reload that was under way may have made another house ready
	if p.delay == nil || p.delay() == 0 {
		return nil
	}
	delay := p.delay()
	p.logger.Info("turning away", "delay", delay)
	select {
	case <-time.After(delay):
		return nil
	case err := <-failed:
		return err
	}
}

// close ends what the handlers used.
func (p *program) close() {
	for _, v := range slices.Backward(p.closers) {
		v()
	}
}
