package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"

	"portico/proxy"
)

// serveCommand is portico serve.
func serveCommand() command {
	return command{
		name:      "serve",
		arguments: "--config FILE | --tracker URL [--redis URL|embedded] [--listen ADDR] [--admin-listen ADDR]",
		summary:   "stand in front of a tracker",
		details: "Answer legacy clients on one address and operators on another until told to stop.\n" +
			"SIGTERM drains: requests that run are finished within timeouts.drain.",
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
				if err := serve(ctx, env, cfg, func(*program) {}); err != nil {
					return exitFailed, err
				}
				return exitOK, nil
			}
		},
	}
}

// serve runs a facade until ctx ends or a signal comes. started is called once
// the sockets are open.
func serve(ctx context.Context, env environment, cfg Config, started func(*program)) error {
	logger := newLogger(env.stderr, cfg.Log)
	rooms, err := build(cfg, env.variable, logger)
	if err != nil {
		return err
	}
	p, err := open(cfg, rooms, logger)
	if err != nil {
		rooms.close()
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	logger.Info("listening", "clients", p.listeners[0].address(), "operators", p.listeners[1].address(),
		"tracker", redactURL(cfg.PrimaryTracker().URL))
	rooms.admin.SetReady(true)
	started(p)
	return p.run(ctx, cfg.Timeouts.Drain)
}

// variable looks into the environment of the command.
func (e environment) variable(name string) (string, bool) {
	value := lookup(e.environ, name)
	return value, value != ""
}

// open opens both sockets of a house.
func open(cfg Config, rooms *house, logger *slog.Logger) (*program, error) {
	clients, err := listen("clients", cfg.Listen, rooms.front, cfg, logger)
	if err != nil {
		return nil, err
	}
	clients.socket = proxy.Listener(clients.socket)
	clients.server.ConnState = proxy.ConnState
	operators, err := listen("operators", cfg.Admin.Listen, rooms.admin, cfg, logger)
	if err != nil {
		_ = clients.socket.Close()
		return nil, err
	}
	return &program{
		logger:    logger,
		listeners: []*listener{clients, operators},
		draining:  func() { rooms.admin.SetReady(false) },
		closers:   []func(){rooms.close},
	}, nil
}

// address makes a URL of a listener for a person to click or type.
func address(l *listener) string { return fmt.Sprintf("http://%s", l.address()) }

var _ http.Handler = (*proxy.Server)(nil)
