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
	Stderr  io.Writer // gets the log
	Environ []string
	Cfg     config.Config
	// Reload reads the configuration again at SIGHUP; nil means never.
	Reload *config.Flags
	// Over stands before the handler of clients; nil means nothing does. With it no request takes the fast path.
	Over func(http.Handler) http.Handler
	// Page, if not nil, returns one more page for operators. It is called once the sockets are open.
	Page func(clients, operators *Listener) admin.Page
	// Started, if not nil, is called once the sockets are open, with the first runtime.
	Started func(clients, operators *Listener, rt *Runtime)

	logger    *slog.Logger
	level     slog.LevelVar
	resources *Resources
	current   current
	// adminAddress is that of the operators' socket, which an inherited one does not take from the configuration.
	adminAddress string
}

// maxOperatorConnections bounds the connections of the operators' listener.
const maxOperatorConnections = 64

// Serve runs until ctx ends or a signal comes.
func (s *Service) Serve(ctx context.Context) error {
	s.open()
	QuietLibraries(s.logger)
	ctx, stop := UntilSignal(ctx)
	defer stop()
	// The sockets come first: what is built stores rules that replicas share, and a process that cannot serve must not.
	clients, operators, err := s.listen()
	if err != nil {
		return err
	}
	if s.Page != nil {
		s.resources.pages = []admin.Page{s.Page(clients, operators)}
	}
	rt, err := Build(ctx, s.Cfg, config.Environment(s.Environ), s.logger, s.resources)
	if err = errors.Join(err, s.resources.metrics.Connections(clients.bound.load)); err != nil {
		return errors.Join(err, clients.Close(ctx), operators.Close(ctx), s.resources.Close())
	}
	s.current.swap(rt)
	s.logger.Info("listening", "clients", clients.Address(), "operators", operators.Address(),
		"connections", clients.bound.limit, "tracker", config.RedactURL(s.Cfg.Trackers[s.Cfg.Primary].URL))
	if s.Started != nil {
		s.Started(clients, operators, rt)
	}
	err = s.run(ctx, clients, operators)
	s.current.close()
	if failed := s.resources.Close(); failed != nil {
		s.logger.Warn("connections or the state could not be closed", "cause", failed)
	}
	s.logger.Info("stopped")
	return err
}

// run serves and reloads until ctx ends or a listener fails, and drains.
func (s *Service) run(ctx context.Context, clients, operators *Listener) error {
	serving, ended := errgroup.WithContext(ctx)
	serving.Go(clients.Run)
	serving.Go(operators.Run)
	serving.Go(func() error {
		s.resources.metrics.Watch(ended, s.current.watched)
		return nil
	})
	var reloading sync.WaitGroup
	if s.Reload != nil {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups) // not before the end: without it a SIGHUP would kill the process
		reloading.Go(func() { s.reloadAt(ended, hangups) })
	}
	<-ended.Done()
	s.current.endReady()
	reloading.Wait()
	timeouts := s.current.endReady()                    // of the runtime that the last reload may have brought
	if timeouts.ShutdownDelay > 0 && ctx.Err() != nil { // load balancers send no more clients, but need time to find that out
		s.logger.Info("waiting for load balancers", "delay", timeouts.ShutdownDelay.String())
		time.Sleep(timeouts.ShutdownDelay)
	}
	// Clients are drained first; the operators' listener serves meanwhile.
	return errors.Join(drain(ctx, timeouts.Drain, s.logger, clients, operators), serving.Wait())
}

// open sets what reload changes.
func (s *Service) open() {
	s.level.Set(logLevel(s.Cfg.Log.Level))
	s.logger = newLogger(s.Stderr, s.Cfg.Log, &s.level)
	s.resources = NewResources()
	s.adminAddress = s.Cfg.Admin.Listen
}

// listen opens both sockets. They may serve once there is a current runtime.
func (s *Service) listen() (clients, operators *Listener, err error) {
	handler := s.current.handler(func(rt *Runtime) http.Handler { return rt.Front })
	if s.Over != nil {
		handler = s.Over(handler)
	}
	inherited, err := inheritedSockets(config.Environment(s.Environ))
	if err != nil {
		return nil, nil, err
	}
	if clients, err = listenOn(inherited["client"], "clients", s.Cfg.Listen, handler, s.Cfg, s.logger); err != nil {
		return nil, nil, err
	}
	switch {
	case s.Cfg.TLS.On():
		secured := s.current.tls(func(rt *Runtime) *tls.Config { return rt.clientsTLS })
		clients.socket = proxy.SecureListener(clients.socket, secured, s.Cfg.Timeouts.Header)
	case s.Over != nil:
		clients.socket = proxy.Listener(clients.socket)
	default:
		clients.socket = proxy.Listener(fastpath.Listener(clients.socket, s.current.serveCached))
	}
	few := s.Cfg
	few.Limits.Connections = maxOperatorConnections
	handler = s.current.handler(func(rt *Runtime) http.Handler { return rt.Operators })
	if operators, err = listenOn(inherited["admin"], "operators", s.Cfg.Admin.Listen, handler, few, s.logger); err != nil {
		return nil, nil, errors.Join(err, clients.Close(context.Background()))
	}
	if inherited["admin"] != nil {
		s.adminAddress = operators.Address()
	}
	if s.Cfg.Admin.OpenToAll(s.adminAddress) {
		return nil, nil, errors.Join(errOpenToAll, clients.Close(context.Background()), operators.Close(context.Background()))
	}
	if s.Cfg.Admin.TLS.On() {
		secured := s.current.tls(func(rt *Runtime) *tls.Config { return rt.operatorsTLS })
		operators.socket = tls.NewListener(operators.socket, secured)
	}
	return clients, operators, nil
}

// reloadAt swaps the runtime at each SIGHUP for one of the configuration as it reads now, and keeps the current one if that has
// problems. It returns when ctx ends.
func (s *Service) reloadAt(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		rt, err := s.rebuild(ctx)
		s.resources.metrics.Reloaded(err)
		if err != nil {
			s.logger.Error("the configuration was not reloaded; the last good one stays", "cause", err)
			continue
		}
		s.current.swap(rt)
		s.logger.Info("configuration reloaded")
	}
}

var (
	// ErrNotGood reports that a configuration has problems.
	ErrNotGood = errors.New("the configuration has problems")
	// errOpenToAll refuses a start or a reload that would open the admin listener to other machines.
	errOpenToAll = errors.New("the admin listener is reachable from other hosts and the configuration has no token; set admin.token_file")
)

// rebuild reads the configuration again and builds a runtime of it. Keys that need a restart keep their values.
func (s *Service) rebuild(ctx context.Context) (*Runtime, error) {
	cfg, problems, err := s.Reload.Load(s.Environ)
	if err != nil {
		return nil, err
	}
	for _, problem := range problems { // in the form of the log, since programs may read it
		if problem.Warning {
			s.logger.Warn("the configuration has a doubtful value", "problem", problem.String())
		} else {
			s.logger.Error("the configuration has a problem", "problem", problem.String())
		}
	}
	if config.Fatal(problems) {
		return nil, ErrNotGood
	}
	needRestart := config.KeepUntilRestart(s.Cfg, &cfg)
	if cfg.Admin.OpenToAll(s.adminAddress) {
		return nil, errOpenToAll
	}
	rt, err := Build(ctx, cfg, config.Environment(s.Environ), s.logger, s.resources)
	if err != nil {
		return nil, err
	}
	if rt.needRestart = needRestart; len(needRestart) > 0 {
		s.logger.Warn("changed keys need a restart; their former values stay", "keys", needRestart)
	}
	s.level.Set(logLevel(cfg.Log.Level))
	return rt, nil
}

// current is the current runtime. Each runtime ends its requests before it is closed.
type current struct {
	mu      sync.RWMutex
	rt      *Runtime // nil before the first swap
	leaving sync.WaitGroup
}

// enter returns the current runtime, which stays open until leave is called.
func (c *current) enter() (rt *Runtime, leave func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.rt.requests.Add(1)
	return c.rt, c.rt.requests.Done
}

// swap makes a runtime the current one, and closes the former one after its last request.
func (c *current) swap(rt *Runtime) {
	rt.admin.SetReady(true)
	c.mu.Lock()
	former := c.rt
	c.rt = rt
	c.mu.Unlock()
	if former != nil {
		c.leaving.Go(former.Close)
	}
}

// close closes all runtimes.
func (c *current) close() {
	c.rt.Close()
	c.leaving.Wait()
}

// handler passes requests to a handler of the current runtime.
func (c *current) handler(of func(*Runtime) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rt, leave := c.enter()
		defer leave()
		of(rt).ServeHTTP(w, r)
	})
}

// serveCached is the fastpath.Handler of the current runtime.
func (c *current) serveCached(w http.ResponseWriter, r *http.Request) bool {
	rt, leave := c.enter()
	defer leave()
	return rt.Front.ServeCached(w, r)
}

// watched is that of the current runtime.
func (c *current) watched() admin.Watched {
	rt, leave := c.enter()
	defer leave()
	return rt.watched()
}

// endReady lets /readyz say that the process is ending, and returns the current timeouts.
func (c *current) endReady() config.Timeouts {
	rt, leave := c.enter()
	defer leave()
	rt.admin.SetReady(false)
	return rt.cfg.Timeouts
}

// tls returns settings that read those of the current runtime, so that a reload renews certificates.
func (c *current) tls(of func(*Runtime) *tls.Config) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			rt, leave := c.enter()
			defer leave()
			if settings := of(rt); settings != nil {
				return settings, nil
			}
			return nil, errors.New("the current configuration has no certificate for this listener")
		},
	}
}
