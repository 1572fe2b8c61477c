package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// Options says what the second listener shows. The zero value has health and an empty overview.
type Options struct {
	// Metrics are shown at /metrics; nil shows none.
	Metrics *Metrics
	// Status gives what /status shows, a value for encoding/json without any credential; nil shows nothing. It is asked for
	// every look, so it must not wait for a tracker.
	Status func(context.Context) any
	// Pages are further pages, of other rooms.
	Pages []Page
	// Token, when it is not empty, is asked for everywhere but by the health checks: as a bearer token, or as the password
	// of a browser's login.
	Token string
	// Certificates says that the connection has checked the client certificates that were shown on it. Who showed one needs no
	// token, and who did not is let in by the token only.
	Certificates bool
}

// Page is what another room has to show or to do.
type Page struct {
	// Path is where the page is, such as /canary. Everything below belongs to it too.
	Path string
	// Title stands in the list of pages; a page without one is not listed.
	Title string
	// Handler answers. Requests that change something are POST and come from the listener's own pages or from no browser.
	Handler http.Handler
}

// Server answers operators. It is an http.Handler, safe for concurrent use.
type Server struct {
	options Options
	handler http.Handler
	ready   atomic.Bool
}

// New makes a Server that is not ready yet.
func New(options Options) (*Server, error) {
	s := &Server{options: options}
	guarded := http.NewServeMux()
	guarded.HandleFunc("GET /{$}", s.overview)
	guarded.HandleFunc("GET /status", s.status)
	if options.Metrics != nil {
		guarded.Handle("GET /metrics", options.Metrics.handler())
	}
	for _, page := range options.Pages {
		if err := page.check(); err != nil {
			return nil, err
		}
		guarded.Handle(page.Path, page.Handler)
		guarded.Handle(page.Path+"/", page.Handler)
	}
	all := http.NewServeMux()
	all.Handle("/livez", looked(alive))
	all.Handle("/readyz", looked(s.readiness))
	addLook(all)
	all.Handle("/", s.guard(s.withLinks(guarded)))
	s.handler = withHeaders(all)
	return s, nil
}

// reserved are the paths that no page may have.
var reserved = map[string]bool{"/livez": true, "/readyz": true, "/metrics": true, "/status": true, "/look": true}

func (p Page) check() error {
	if p.Handler == nil {
		return fmt.Errorf("the page %q has no handler", p.Path)
	}
	if len(p.Path) < 2 || p.Path[0] != '/' || strings.HasSuffix(p.Path, "/") || strings.ContainsAny(p.Path, " {}") || reserved[p.Path] {
		return errors.New("the page " + p.Path + " has no path of its own")
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// SetReady tells whether clients should be sent here: true once both sockets are open, false from the beginning of the drain.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// alive says that the process runs.
func alive(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive") }

// readiness says whether clients should be sent here. A tracker that is down does not count: Portico still has answers, and
// taking it out of service would help nobody.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	if s.ready.Load() {
		plain(w, http.StatusOK, "ready")
		return
	}
	plain(w, http.StatusServiceUnavailable, "starting or draining")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// state gives what there is to show, as JSON.
func (s *Server) state(ctx context.Context) ([]byte, error) {
	var value any = struct{}{}
	if s.options.Status != nil {
		value = s.options.Status(ctx)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	return text, nil
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	text, err := s.state(r.Context())
	if err != nil {
		plain(w, http.StatusInternalServerError, "the status cannot be shown")
		return
	}
	var pretty bytes.Buffer
	_ = json.Indent(&pretty, text, "", "  ") // what Marshal wrote is JSON
	pretty.WriteByte('\n')
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(pretty.Bytes())
}
