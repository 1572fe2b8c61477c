package app

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/proxy"
	"portico/upstream/bugzilla"
	"portico/upstream/switchover"
)

// Explanation is what serve would do with one request.
type Explanation struct {
	// Record says what became of the request.
	Record proxy.Record
	// Rules is what the rules decide.
	Rules switchover.DryRun
	// Sent is the last request to each tracker.
	Sent map[string]SentRequest
	// Status, Header and Body are the response that the client gets.
	Status int
	Header http.Header
	Body   bytes.Buffer
	// Config is the configuration with the dialects that count.
	Config config.Config

	table switchover.Table
	mu    sync.Mutex // guards Sent
}

// SentRequest is a request to a tracker without credentials: its first line and its headers, and its body.
type SentRequest struct {
	Lines []string
	Body  []byte
}

// Explain takes a request through the components of serve. Nothing is sent, cached or stored: trackers are replaced by what keeps the
// request, and the state is a new one in memory. The rules are those of table. A tracker whose dialect is not configured counts as
// bugzilla-5, as it does for serve until it has told its version.
func Explain(request *http.Request, cfg config.Config, table switchover.Table) (_ *Explanation, err error) {
	cfg.Cache.Scope, cfg.Traces.Endpoint, cfg.State = "off", "", "sqlite::memory:"
	cfg.Trackers = maps.Clone(cfg.Trackers)
	for name, t := range cfg.Trackers {
		if t.Dialect == "auto" {
			t.Dialect = mapping.Bugzilla5().Name
			cfg.Trackers[name] = t
		}
	}
	e := &Explanation{table: table, Config: cfg, Sent: map[string]SentRequest{}, Header: http.Header{}}
	s := New(io.Discard, cfg)
	s.dry = e
	defer func() { err = errors.Join(err, s.Close()) }()
	rt, err := s.Build(request.Context(), cfg)
	if err != nil {
		return nil, err
	}
	rt.Front.ServeHTTP(dryResponse{e}, request)
	return e, nil
}

// transport takes the place of the connections to a tracker.
func (e *Explanation) transport(tracker string) http.RoundTripper {
	return bugzilla.DryTransport(func(lines []string, body []byte) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.Sent[tracker] = SentRequest{lines, body}
	})
}

// dryResponse is the http.ResponseWriter and the proxy.Observer of an explained request.
type dryResponse struct{ *Explanation }

// Finished implements proxy.Observer.
func (d dryResponse) Finished(record proxy.Record) { d.Record = record }

// Header implements http.ResponseWriter.
func (d dryResponse) Header() http.Header { return d.Explanation.Header }

// WriteHeader implements http.ResponseWriter.
func (d dryResponse) WriteHeader(status int) { d.Status = status }

// Write implements http.ResponseWriter.
func (d dryResponse) Write(p []byte) (int, error) { return d.Body.Write(p) }
