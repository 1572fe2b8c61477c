package app

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"portico/cmd/portico/config"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/proxy/fastpath"
)

// Service is one run of portico serve.
type Service struct {
	// Reload reads the configuration again at SIGHUP; nil means never.
	Reload func() (config.Config, []config.Problem, error)
	// Over stands before the handler of clients; nil means nothing does. With it no request takes the fast path.
	Over func(http.Handler) http.Handler
	// Started, if not nil, is called once the sockets are open, with the first runtime. Nothing is served before it returns.
	Started func(clients, operators *Listener, rt *Runtime)

	resources
	cfg       config.Config
	level     *slog.LevelVar
	listeners []*Listener // of clients and of operators, as far as they are open
}

// New returns a service of a configuration that has no problems. Its log goes to stderr.
func New(stderr io.Writer, cfg config.Config) *Service {
	s := &Service{cfg: cfg}
	s.metrics, s.idempotency, s.runtime = admin.NewMetrics(), proxy.NewIdempotency(nil, nil), &Runtime{}
	s.metrics.Build(Version)
	s.logger, s.level = NewLogger(stderr, cfg.Log)
	return s
}

// maxOperatorConnections bounds the connections of the admin listener.
const maxOperatorConnections = 64

// Serve runs until ctx ends or a signal comes, and closes the service.
func (s *Service) Serve(ctx context.Context) error {
	QuietLibraries()
	ctx, stop := UntilSignal(ctx)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // the end of the program that reads the log must not end this one
	hangups := make(chan os.Signal, 1)
	if s.Reload != nil {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups) // from the start to the end: without it a SIGHUP would kill the process
	}
	if err := s.start(ctx); err != nil {
		for _, l := range s.listeners {
			err = errors.Join(err, l.Drain(ctx))
		}
		return errors.Join(err, s.Close())
	}
	err := s.run(ctx, hangups)
	if failed := s.Close(); failed != nil {
		s.logger.Warn("connections or the state could not be closed", "cause", failed)
	}
	s.logger.Info("stopped")
	return err
}

// start opens the sockets and builds the first runtime. The sockets come first: what is built stores rules that replicas share, and a
// process that cannot serve must not.
func (s *Service) start(ctx context.Context) error {
	if err := s.listen(); err != nil {
		return err
	}
	clients, operators := s.listeners[0], s.listeners[1]
	rt, err := s.Build(ctx, s.cfg)
	if err != nil {
		return err
	}
	s.metrics.Connections(clients.load)
	s.logger.Info("listening", "clients", clients.Address(), "operators", operators.Address(),
		"connections", clients.limit, "tracker", s.cfg.Trackers[s.cfg.Primary].URL)
	if s.Started != nil {
		s.Started(clients, operators, rt)
	}
	return nil
}

// listen opens both sockets. They may serve once there is a current runtime.
func (s *Service) listen() error {
	inherited, err := inheritedSockets()
	if err != nil {
		return err
	}
	handler := s.handler(func(rt *Runtime) http.Handler { return rt.Front })
	if s.Over != nil {
		handler = s.Over(handler)
	}
	clients, err := Listen(inherited["client"], "clients", s.cfg.Listen, handler, s.cfg, s.logger)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, clients)
	switch {
	case s.cfg.TLS.On():
		secured := s.tls(func(rt *Runtime) *tls.Config { return rt.clientsTLS })
		clients.served = proxy.SecureListener(clients, s.logger, secured, s.cfg.Timeouts.Header)
	case s.Over != nil:
		clients.served = proxy.Listener(clients, s.logger)
	default:
		clients.served = proxy.Listener(fastpath.Listener(clients, s.mayServeAtOnce, s.serveAtOnce), s.logger)
	}
	bounded := s.cfg
	bounded.Limits.Connections = maxOperatorConnections
	handler = s.handler(func(rt *Runtime) http.Handler { return rt.Operators })
	operators, err := Listen(inherited["admin"], "operators", s.cfg.Admin.Listen, handler, bounded, s.logger)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, operators)
	operators.server.ReadTimeout = s.cfg.Timeouts.Header // of a body that no handler reads; handlers have their own
	if s.cfg.Admin.TLS.On() {
		operators.served = tls.NewListener(operators, s.tls(func(rt *Runtime) *tls.Config { return rt.operatorsTLS }))
	}
	return s.checkAccess(&s.cfg)
}

// checkAccess refuses a configuration that would open the admin listener to other machines. The address of an inherited socket does not
// come from the configuration, and a reload does not change it.
func (s *Service) checkAccess(cfg *config.Config) error {
	if cfg.Admin.OpenToAll(s.listeners[1].Address()) {
		return errors.New("the admin listener is reachable from other hosts and the configuration has no token; set admin.token_file")
	}
	return nil
}

// run serves and reloads until ctx ends or a listener fails, and drains.
func (s *Service) run(ctx context.Context, hangups <-chan os.Signal) error {
	serving, ended := errgroup.WithContext(ctx)
	for _, l := range s.listeners {
		serving.Go(l.Run)
	}
	serving.Go(func() error {
		s.metrics.Watch(ended, func() admin.Watched { return s.current().watched() })
		return nil
	})
	var reloading sync.WaitGroup
	reloading.Go(func() { s.reloadAt(ended, hangups) })
	<-ended.Done()
	reloading.Wait()
	rt := s.current()
	rt.admin.SetReady(false)
	timeouts := rt.cfg.Timeouts
	if timeouts.ShutdownDelay > 0 && ctx.Err() != nil { // load balancers send no more clients, but need time to find that out
		s.logger.Info("waiting for load balancers", "delay", timeouts.ShutdownDelay.String())
		time.Sleep(timeouts.ShutdownDelay)
	}
	// Clients are drained first; the admin listener serves meanwhile.
	return errors.Join(drain(ctx, timeouts.Drain, s.logger, s.listeners...), serving.Wait())
}

// enter returns the current runtime, which stays open until leave is called.
func (r *resources) enter() (rt *Runtime, leave func()) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.runtime.requests.Add(1)
	return r.runtime, r.runtime.requests.Done
}

// handler passes requests to a handler of the current runtime.
func (s *Service) handler(of func(*Runtime) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rt, leave := s.enter()
		defer leave()
		of(rt).ServeHTTP(w, r)
	})
}

// mayServeAtOnce is the fastpath.Filter of the current runtime. The fast path ends no connection.
func (s *Service) mayServeAtOnce(request []byte) bool {
	return !s.listeners[0].endsConnections() && s.current().Front.MayServeAtOnce(request)
}

// serveAtOnce is the fastpath.Handler of the current runtime.
func (s *Service) serveAtOnce(w http.ResponseWriter, r *http.Request) bool {
	rt, leave := s.enter()
	defer leave()
	return rt.Front.ServeAtOnce(w, r)
}

// tls returns settings that read those of the current runtime, so that a reload renews certificates.
func (s *Service) tls(of func(*Runtime) *tls.Config) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return of(s.current()), nil },
	}
}
