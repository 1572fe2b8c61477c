package admin

import (
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
)

// Options configure the listener for operators. The zero value has health checks and an empty overview.
type Options struct {
	// Metrics are shown at /metrics, and their alarm and traffic on the first page; nil shows none.
	Metrics *Metrics
	// Status returns what /status shows, a value for encoding/json without any credential; nil shows nothing. Each request
	// calls it, so it must not wait for a tracker.
	Status func(context.Context) any
	// Unready returns the reason why no client would get a response, or "" if clients get one; nil is like "".
	Unready func() string
	// Pages are the pages of other packages.
	Pages []Page
	// Token, if not empty, is required everywhere except by the health checks: as a bearer token, or as the password of a
	// browser's login. Only with a token are there profiles at /debug/pprof/.
	Token string
	// Certificates says that the connection verifies client certificates. A client with one needs no token; a client
	// without one is let in by the token only.
	Certificates bool
}

// Page is a part of the listener that another package provides.
type Page struct {
	// Path is where the page is, such as /canary. Everything below belongs to it too.
	Path string
	// Title is the text in the list of pages; a page without one is not listed.
	Title string
	// Handler serves the page. Requests that change something are POST, from the listener's own pages or from no browser.
	Handler http.Handler
}

// Server is the http.Handler of the listener for operators. It is safe for concurrent use.
type Server struct {
	options Options
	handler http.Handler
	ready   atomic.Bool
}

// description is that of the interface for clients, in the form of OpenAPI.
//
//go:embed openapi.yaml
var description embed.FS

// New returns a Server that is not ready yet. It panics when two pages have the same path.
func New(options Options) *Server {
	if options.Status == nil {
		options.Status = func(context.Context) any { return struct{}{} }
	}
	s := &Server{options: options}
	guarded := http.NewServeMux()
	guarded.HandleFunc("GET /{$}", s.overview)
	guarded.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { WriteJSON(w, http.StatusOK, options.Status(r.Context())) })
	if options.Metrics != nil {
		guarded.Handle("GET /metrics", options.Metrics.handler())
	}
	guarded.Handle("GET /openapi.yaml", http.FileServerFS(description))
	if options.Token != "" { // profiles show the paths of files, and taking one costs CPU
		guarded.HandleFunc("GET /debug/pprof/", pprof.Index)
		guarded.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		guarded.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	for _, page := range options.Pages {
		guarded.Handle(page.Path, page.Handler)
		guarded.Handle(page.Path+"/", page.Handler)
	}
	open := http.NewServeMux()
	open.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive") })
	open.HandleFunc("GET /readyz", s.readiness)
	style, script := assets()
	open.Handle("GET "+style.path, style)
	open.Handle("GET "+script.path, script)
	behindGuard := s.guard(s.withLinks(guarded))
	s.handler = withHeaders(Offer(open, func(w http.ResponseWriter, r *http.Request, status int) {
		if status == http.StatusNotFound {
			behindGuard.ServeHTTP(w, r)
			return
		}
		plain(w, status, "there is nothing to change here")
	}))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// SetReady sets whether clients should be sent here: true once both sockets are open, false from the beginning of the drain.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// readiness reports whether clients should be sent here. A tracker that is down does not count: Portico can still respond from
// its cache. A tracker that redirects every request does, since the configuration is wrong.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	status, text := http.StatusServiceUnavailable, "starting or draining"
	if s.ready.Load() {
		status, text = http.StatusOK, "ready"
		if s.options.Unready != nil {
			if problem := s.options.Unready(); problem != "" {
				status, text = http.StatusServiceUnavailable, problem
			}
		}
	}
	plain(w, status, text)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// WriteJSON responds with an indented value, or with 500 if it cannot be written as JSON.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error": "the response cannot be shown"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that has gone needs no error
}

// Offer serves what mux has patterns for. It passes other requests to refuse: with 405 and the Allow header set if the path takes
// other methods, with 404 otherwise.
func Offer(mux *http.ServeMux, refuse func(w http.ResponseWriter, r *http.Request, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := refusal{ResponseWriter: w}
		handler.ServeHTTP(&refused, r)
		w.Header().Del("Content-Type") // that of the text that refusal drops
		refuse(w, r, refused.status)
	})
}

// refusal takes the status and the header of a ServeMux's own response, and drops its text.
type refusal struct {
	http.ResponseWriter
	status int
}

func (r *refusal) WriteHeader(status int)         { r.status = status }
func (r *refusal) Write(text []byte) (int, error) { return len(text), nil }
