package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"portico/proxy"
)

// serveCommand is portico serve.
func serveCommand() command {
	return command{
		name:      "serve",
		arguments: "--config FILE | --tracker URL [--redis URL|embedded] [--listen ADDR] [--admin-listen ADDR]",
		summary:   "stand in front of a tracker",
		details: "Answer legacy clients on one address and operators on another until told to stop.\n" +
			"SIGTERM drains: /readyz fails, after timeouts.shutdown_delay nobody is let in any more, and requests\n" +
			"that run are finished within timeouts.drain. A second signal ends at once.",
		prepare: func(fs *flag.FlagSet) runner {
			flags := registerConfigFlags(fs)
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if err := noArguments(args); err != nil {
					return exitUsage, err
				}
				cfg, ok, err := flags.loadOrReport(env)
				if err != nil || !ok {
					return exitFailed, err
				}
				host := facade{env: env, cfg: cfg, reload: flags, started: func(*program) {}}
				if err := host.serve(ctx); err != nil {
					return exitFailed, err
				}
				return exitOK, nil
			}
		},
	}
}

// facade is one run of portico serve.
type facade struct {
	env environment
	cfg Config
	// reload reads the configuration again at SIGHUP; nil means never.
	reload *configFlags
	// level is that of the log, which a reload may change.
	level slog.LevelVar
	// stopping is the part of the present configuration that is about the end.
	stopping atomic.Pointer[TimeoutsConfig]
	// lasting is handed from house to house.
	lasting *lasting
	// started is called once the sockets are open.
	started func(*program)
	// over goes before what answers clients; nil means nothing does.
	over func(http.Handler) http.Handler
	// scene is set before started is called.
	scene *stage
}

// serve runs until ctx ends or a signal comes.
func (f *facade) serve(ctx context.Context) error {
	defer runtime.KeepAlive(heapFloor())
	f.level.Set(logLevel(f.cfg.Log.Level))
	logger := newLoggerAt(f.env.stderr, f.cfg.Log, &f.level)
	quietLibraries(logger)
	p, scene, err := f.begin(logger)
	if err != nil {
		return err
	}
	if f.scene = scene; f.over != nil {
		p.listeners[0].server.Handler = f.over(p.listeners[0].server.Handler)
	}
	f.stopping.Store(&f.cfg.Timeouts)
	ctx, stop := untilSignal(ctx)
	defer stop()
	f.lasting.life = ctx
	if f.reload != nil {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups) // not before the end: while it stops, one more would kill the process
		p.background.Go(func() {
			reloadOnHangup(ctx, hangups, scene, func() (*house, error) { return f.rebuild(logger) }, logger)
		})
	}
	logger.Info("listening", "clients", p.listeners[0].address(), "operators", p.listeners[1].address(),
		"tracker", redactURL(f.cfg.PrimaryTracker().URL))
	scene.setReady(true)
	f.started(p)
	p.delay = func() time.Duration { return f.stopping.Load().ShutdownDelay }
	return p.run(ctx, func() time.Duration { return f.stopping.Load().Drain }, stop)
}

// begin opens the sockets and builds what answers there. The sockets come first: what is built stores rules that replicas
// share, and a process that cannot serve must not.
func (f *facade) begin(logger *slog.Logger) (*program, *stage, error) {
	f.lasting = newLasting()
	scene := newStage(nil)
	p, err := open(f.cfg, scene, logger)
	if err != nil {
		return nil, nil, err
	}
	if scene.current.rooms, err = build(f.cfg, f.env.variable, logger, f.lasting); err != nil {
		for _, l := range p.listeners {
			_ = l.socket.Close()
		}
		return nil, nil, err
	}
	return p, scene, nil
}

var (
	errNotGood   = errors.New("the configuration has problems")
	errTLSTurned = errors.New("TLS of a listener is turned on and off by a new start only")
	errOpenToAll = errors.New("the operators' listener stays where it is until the next start, open to other machines, and nothing would ask them who they are")
)

// rebuild reads the configuration again and makes a house of it. What belongs to the
// listeners stays as it is until the next start.
func (f *facade) rebuild(logger *slog.Logger) (*house, error) {
	cfg, problems, err := f.reload.load(f.env.environ)
	if err != nil {
		return nil, err
	}
	if logProblems(logger, problems); fatal(problems) {
		return nil, errNotGood
	}
	if cfg.TLS.on() != f.cfg.TLS.on() || cfg.Admin.TLS.on() != f.cfg.Admin.TLS.on() {
		return nil, errTLSTurned
	}
	if openToAll(f.cfg.Admin.Listen, cfg.Admin) {
		return nil, errOpenToAll
	}
	rooms, err := build(cfg, f.env.variable, logger, f.lasting)
	if err != nil {
		return nil, err
	}
	if keys := fixed(f.cfg, cfg); len(keys) > 0 {
		logger.Warn("some keys change with the next start only", "keys", keys)
	}
	f.level.Set(logLevel(cfg.Log.Level))
	f.stopping.Store(&cfg.Timeouts)
	return rooms, nil
}

// logProblems tells what is wrong with a configuration in the form that the log has by now,
// since who reads the lines of a running process may be a machine.
func logProblems(logger *slog.Logger, problems []Problem) {
	for _, p := range problems {
		if p.Warning {
			logger.Warn("the configuration has a doubtful value", "problem", p.String())
		} else {
			logger.Error("the configuration has a problem", "problem", p.String())
		}
	}
}

// fixed are the keys that have another value now and belong to what a reload does not
// replace: the listeners, and the form of the log.
func fixed(began, now Config) []string {
	var keys []string
	for _, key := range []struct {
		name  string
		other bool
	}{
		{"listen", began.Listen != now.Listen},
		{"admin.listen", began.Admin.Listen != now.Admin.Listen},
		{"limits.header", began.Limits.Header != now.Limits.Header},
		{"timeouts.header", began.Timeouts.Header != now.Timeouts.Header},
		{"timeouts.idle", began.Timeouts.Idle != now.Timeouts.Idle},
		{"log.format", began.Log.Format != now.Log.Format},
	} {
		if key.other {
			keys = append(keys, key.name)
		}
	}
	return keys
}

// variable looks into the environment of the command.
func (e environment) variable(name string) (string, bool) {
	value := lookup(e.environ, name)
	return value, value != ""
}

// open opens both sockets.
func open(cfg Config, scene *stage, logger *slog.Logger) (*program, error) {
	clients, err := listen("clients", cfg.Listen, scene.front(), cfg, logger)
	if err != nil {
		return nil, err
	}
	clients.socket = clientSocket(clients.socket, cfg, scene)
	operators, err := listen("operators", cfg.Admin.Listen, scene.back(), cfg, logger)
	if err != nil {
		_ = clients.socket.Close()
		return nil, err
	}
	operators.socket = operatorSocket(operators.socket, cfg, scene)
	return &program{
		logger:    logger,
		listeners: []*listener{clients, operators},
		draining:  func() { scene.setReady(false) },
		closers:   []func(){scene.close},
	}, nil
}

// operatorsPause bounds the pauses of operators, who send little.
func operatorsPause(cfg Config) proxy.ClientPause {
	return proxy.ClientPause{Sending: min(cfg.Timeouts.Read, 5*time.Second), Taking: cfg.Timeouts.Write}
}

// address makes a URL of a listener for a person to click or type.
func address(l *listener) string { return fmt.Sprintf("http://%s", l.address()) }

var _ http.Handler = (*proxy.Server)(nil)
