package admin

import (
	"embed"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure the listener for operators. Metrics, Status, Looked and Unready are required.
type Options struct {
	// Metrics are shown at /metrics.
	Metrics *Metrics
	// Status returns what /status shows. Each request calls it, so it must not wait for a tracker.
	Status func() Status
	// Looked is called when an operator or a collector of metrics asks for anything but health. It must not wait.
	Looked func()
	// Unready returns the reason why no client would get a response, or "" if clients get one.
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

// assets are the stylesheet and the script. They need no token, so nothing else is with them.
//
//go:embed assets
var assets embed.FS

// descriptions are the interfaces for clients and for operators in the form of OpenAPI.
//
//go:embed openapi.yaml openapi-admin.yaml
var descriptions embed.FS

// New returns a Server that is not ready yet. It panics when two pages have the same path.
func New(options Options) *Server {
	s := &Server{options: options}
	guarded := http.NewServeMux()
	guarded.HandleFunc("GET /{$}", s.overview)
	guarded.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, http.StatusOK, options.Status()) })
	guarded.Handle("GET /metrics", promhttp.HandlerFor(options.Metrics.all, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	guarded.Handle("GET /openapi.yaml", http.FileServerFS(descriptions))
	guarded.Handle("GET /openapi-admin.yaml", http.FileServerFS(descriptions))
	if options.Token != "" { // profiles show the paths of files, and taking one costs CPU
		guarded.HandleFunc("GET /debug/pprof/", pprof.Index)
		guarded.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		guarded.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	for _, page := range options.Pages {
		guarded.Handle(page.Path, page.Handler)
		guarded.Handle(page.Path+"/", page.Handler)
		guarded.Handle("GET "+page.Path+"/{$}", http.RedirectHandler(page.Path, http.StatusMovedPermanently))
	}
	open := http.NewServeMux()
	open.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive") })
	open.HandleFunc("/readyz", s.readiness)
	open.Handle("/assets/", http.FileServerFS(assets))
	open.Handle("/", s.guard(s.withLinks(guarded)))
	s.handler = open
	return s
}

// SetReady sets whether clients should be sent here: true once both sockets are open, false from the beginning of the drain.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// readiness reports whether clients should be sent here. A tracker that is down does not count: Portico can still respond from
// its cache. A tracker that redirects every request does, since the configuration is wrong.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	problem := "starting or draining"
	if s.ready.Load() {
		problem = s.options.Unready()
	}
	if problem != "" {
		plain(w, http.StatusServiceUnavailable, problem)
		return
	}
	plain(w, http.StatusOK, "ready")
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
