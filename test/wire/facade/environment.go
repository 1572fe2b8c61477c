package facade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/proxy"
	"portico/test/wire"
	"portico/upstream/bugzilla"
	"portico/upstream/recording"
	"portico/upstream/transport"
)

// Environment is Portico, without a cache, in front of a scripted tracker, both on sockets of their own.
type Environment struct {
	scripted *Scripted
	dialect  string
	address  string
	closers  []func() error
}

// Open builds an environment for a tracker of a dialect.
func Open(dialect string) (*Environment, error) {
	h := &Environment{scripted: &Scripted{}, dialect: dialect}
	if err := h.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open an environment for the recordings: %w", err), h.Close())
	}
	return h, nil
}

func (h *Environment) open() error {
	dir, err := os.MkdirTemp("", "portico-replay-*")
	if err != nil {
		return err
	}
	h.closers = append(h.closers, func() error { return os.RemoveAll(dir) })
	behind, err := h.serve(h.scripted, func(inner net.Listener) net.Listener { return inner })
	if err != nil {
		return err
	}
	facade, err := h.facade(behind, dir)
	if err != nil {
		return err
	}
	front, err := h.serve(facade, func(inner net.Listener) net.Listener { return proxy.Listener(inner, slog.New(slog.DiscardHandler)) })
	h.address = front.String()
	return err
}

// facade is Portico. The recordings have many failures in a row, at which a breaker would open.
func (h *Environment) facade(behind *url.URL, dir string) (http.Handler, error) {
	stack := transport.New(transport.Options{Break: transport.BreakOptions{Unanswered: 1 << 20, MinRequests: 1 << 20}})
	h.closers = append(h.closers, func() error { stack.Close(); return nil })
	client, err := bugzilla.New(bugzilla.Options{
		URL: behind, Dialect: h.dialect, Transport: stack, Split: jsonblob.SplitOptions{Dir: dir},
	})
	if err != nil {
		return nil, err
	}
	return proxy.New(proxy.Options{
		Tracker: client, BlobDir: dir,
		Passthrough: proxy.Passthrough{Target: proxy.Target{Base: behind, Transport: stack}, Prefixes: []string{"/"}},
	})
}

// serve answers on a free port of this machine until the environment is closed.
func (h *Environment) serve(handler http.Handler, wrap func(net.Listener) net.Listener) (*url.URL, error) {
	socket, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return &url.URL{}, err
	}
	server := &http.Server{Handler: handler, ConnState: proxy.ConnState}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(wrap(socket)) }()
	h.closers = append(h.closers, func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return &url.URL{Scheme: "http", Host: socket.Addr().String()}, nil
}

// Close ends everything, the last opened first.
func (h *Environment) Close() error {
	var failed error
	for len(h.closers) > 0 {
		last := len(h.closers) - 1
		failed = errors.Join(failed, h.closers[last]())
		h.closers = h.closers[:last]
	}
	return failed
}

// Result is what became of one exchange.
type Result struct {
	wire.Exchange
	// Diff is what differs from the recorded answer and is not accounted for everywhere.
	Diff []string
	// Account is the row that says why, if there is one.
	Account Account
}

// Kind says how the answer stands to the recorded one.
func (r *Result) Kind() Kind {
	switch {
	case len(r.Diff) == 0:
		return Same
	case r.Account.Kind == "":
		return Different
	default:
		return r.Account.Kind
	}
}

// Run sends every exchange whose answer is known through Portico, while the tracker gives the recorded answer.
func (h *Environment) Run(ctx context.Context, exchanges []wire.Exchange, accounts []Account, headers []string) []Result {
	var results []Result
	for _, exchange := range exchanges {
		if exchange.Response == nil {
			continue
		}
		result := Result{Exchange: exchange}
		result.Account, _ = accountOf(accounts, exchange.Name)
		everywhere := headers
		if recording.OperationOf(exchange.Request.Method, exchange.Request.Path) == mapping.OpCreateAttachment {
			everywhere = append(slices.Clone(headers), "body .attachments") // BMO and Harmony give the whole object there
		}
		h.scripted.Say(*exchange.Response)
		got, err := wire.Send(ctx, h.address, exchange.Request)
		if err != nil {
			result.Diff = []string{err.Error()}
		} else {
			result.Diff = significant(wire.Diff(*exchange.Response, got), everywhere)
		}
		results = append(results, result)
	}
	return results
}
