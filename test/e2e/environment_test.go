package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portico/cache"
	"portico/mapping"
	"portico/proxy"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/transport"
)

// environment is Portico before a reference tracker whose exchanges are recorded: the chain that the program builds, in one process so
// that a test can inspect it, or the program itself.
type environment struct {
	*client
	tracker *tracker.Server
	tape    *recording
	// behind is where the tracker listens, or what stands before it.
	behind *url.URL
	cache  *cache.Cache
	// program is Portico as a process, where the plan asks for one.
	program *facade
}

// plan says how an environment differs from the usual one, which is a stock tracker with the fixture, and no cache.
type plan struct {
	cached    bool
	responses proxy.Responses
	tracker   tracker.Options
	dialect   string
	limits    proxy.Limits
	transport transport.Options
	timeout   time.Duration
	pass      []string
	// program asks for the program, with a cache, and env for settings such as "CACHE_SCOPE=off".
	program bool
	env     []string
	// before is put before the tracker, to see or to change what goes to it.
	before func(http.Handler) http.Handler
	// below is the path under which the tracker is reached.
	below string
	// header and query are sent with every request of steps: headers, one a line, and parameters.
	header, query string
}

// String tells plans of one promise apart.
func (p plan) String() string {
	name := fmt.Sprintf("responses %q, cached %v", p.responses, p.cached)
	if p.program {
		name = strings.Join(append([]string{"program"}, p.env...), " ")
	}
	return strings.TrimSpace(strings.Join([]string{name, p.tracker.Dialect, p.below, strings.ReplaceAll(p.header, "\n", " "), p.query}, " "))
}

// open builds an environment, which ends with the test.
func open(t testing.TB, p plan) *environment {
	t.Helper()
	h := &environment{tracker: process.Reference(t, p.tracker), tape: &recording{}}
	var handler http.Handler = h.tracker
	if p.below != "" {
		handler = under(p.below, handler)
	}
	if p.before != nil {
		handler = p.before(handler)
	}
	h.behind = process.Listen(t, h.tape.over(handler))
	h.behind.Path = p.below
	if p.program {
		h.program = startFacade(t, h.behind.String()+"/", p.env...)
		h.client = h.program.client
		return h
	}
	stack := transport.New(p.transport)
	t.Cleanup(stack.Close)
	remote := process.Client(t, h.behind, stack, cmp.Or(p.dialect, "auto"))
	var next upstream.Tracker = remote
	if p.cached {
		h.cache = cacheOver(t, remote)
		next = h.cache
	}
	h.client = &client{base: h.front(t, p, next, remote, stack), keys: keys()}
	return h
}

// front serves Portico as cmd/portico builds it.
func (h *environment) front(t testing.TB, p plan, next upstream.Tracker, remote *bugzilla.Client, stack *transport.Stack) string {
	t.Helper()
	if p.pass == nil {
		p.pass = []string{"/"}
	}
	options := proxy.Options{
		Tracker: next, BlobDir: t.TempDir(), Responses: p.responses, Limits: p.limits,
		Timeout:        p.timeout,
		FlagTypeWrites: func(ctx context.Context) bool { return remote.Dialect(ctx).FlagTypeWrites },
		Passthrough: proxy.Passthrough{
			Target: proxy.Target{
				Base: h.behind, Transport: stack,
				For: func(ctx context.Context, _ mapping.Operation, _ upstream.Caller, _ bool) context.Context {
					return transport.With(ctx, func(c *transport.Call) { c.Stream = true })
				},
				Dialect: remote.Dialect,
			},
			Prefixes: p.pass,
		},
	}
	if h.cache != nil {
		options.Passthrough.FlagTypesChanging = h.cache.WriteAround
	}
	handler, err := proxy.New(options)
	must(t, err)
	return process.Listen(t, handler).String()
}

// under serves a tracker below a path. The reference tracker looks at the request line, so that is rewritten too.
func under(path string, next http.Handler) http.Handler {
	return http.StripPrefix(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RequestURI = r.URL.RequestURI()
		next.ServeHTTP(w, r)
	}))
}

// stub responds to everything in place of a tracker.
func stub(handler http.HandlerFunc) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler { return handler }
}

func parsed(t testing.TB, address string) *url.URL {
	t.Helper()
	base, err := url.Parse(address)
	must(t, err)
	return base
}
