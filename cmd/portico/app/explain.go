package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/switchover"
)

// Explanation is what serve would do with one request.
type Explanation struct {
	// Record says what became of the request.
	Record   proxy.Record
	response memoryResponse
	dry      *dryRun
	cfg      config.Config
}

// Explain takes a request through the components of serve. Nothing is sent, cached or stored: trackers are replaced by what keeps the
// request, and the state is a new one in memory. The rules are those of table. A tracker whose dialect is not configured counts as
// bugzilla-5, as it does for serve until it has told its version.
func Explain(request *http.Request, cfg config.Config, table switchover.Table, lookup config.Variables) (_ *Explanation, err error) {
	e := &Explanation{dry: &dryRun{table: table, sent: map[string]string{}}, response: memoryResponse{header: http.Header{}}}
	cfg.Cache.Scope, cfg.Traces.Endpoint, cfg.State = "off", "", "sqlite::memory:"
	cfg.Trackers = maps.Clone(cfg.Trackers)
	for name, t := range cfg.Trackers {
		if t.Dialect == "auto" {
			t.Dialect = mapping.Bugzilla5().Name
			cfg.Trackers[name] = t
		}
	}
	e.cfg = cfg
	resources := NewResources()
	resources.dry = e.dry
	defer func() { err = errors.Join(err, resources.Close()) }()
	rt, err := Build(request.Context(), cfg, lookup, slog.New(slog.DiscardHandler), resources)
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	rt.Front.ServeHTTP(&e.response, request)
	e.Record = e.dry.record
	return e, nil
}

// Print writes which rules count and what the trackers would be sent, or else what the client gets.
func (e *Explanation) Print(w io.Writer) {
	d, shown := e.dry, false
	if len(d.lookups) > 0 {
		fmt.Fprintf(w, "the rules    need a lookup, which explain does not send: %s\n", strings.Join(d.lookups, "; "))
	} else {
		fmt.Fprint(w, strings.Join(d.decisions, ""))
	}
	for _, name := range []string{e.cfg.Primary, e.cfg.Candidate} {
		text := d.sent[name]
		if text == "" {
			continue
		}
		if e.cfg.Candidate != "" && e.Record.Operation == proxy.OpPassthrough {
			fmt.Fprintf(w, "rule         of the passthrough: %s answers\n", name)
		}
		fmt.Fprintf(w, "dialect      %s\n%s", e.cfg.Trackers[name].Dialect, text)
		shown = true
	}
	if shown {
		return
	}
	fmt.Fprintf(w, "dialect      %s\nthe tracker  is not asked\n", e.cfg.Trackers[e.cfg.Primary].Dialect)
	if len(d.lookups) > 0 {
		return
	}
	fmt.Fprintf(w, "the client   gets %d", e.response.status)
	if reason := e.response.header.Get("Portico-Error"); reason != "" {
		fmt.Fprintf(w, " (%s)", reason)
	}
	fmt.Fprintf(w, "\n%s\n", e.response.body.Bytes())
}

// memoryResponse is an http.ResponseWriter in memory.
type memoryResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (m *memoryResponse) Header() http.Header { return m.header }

// WriteHeader implements http.ResponseWriter.
func (m *memoryResponse) WriteHeader(status int) { m.status = status }

// Write implements http.ResponseWriter.
func (m *memoryResponse) Write(p []byte) (int, error) { return m.body.Write(p) }

// dryRun takes the place of everything that Build joins with the world, and keeps what the components decide about one request.
type dryRun struct {
	table switchover.Table

	mu        sync.Mutex // guards what follows: parts of one request may go to both trackers at once
	record    proxy.Record
	decisions []string          // lines about the rules
	lookups   []string          // what the rules need to know
	sent      map[string]string // the last request to each tracker as lines
}

// Finished implements proxy.Observer.
func (d *dryRun) Finished(record proxy.Record) { d.record = record }

// replace takes the place of everything around the switchover.
func (d *dryRun) replace(settings *switchover.Settings) {
	settings.Table, settings.Shadow = d.table, d
	settings.Observer = switchover.Observer{Routed: func(_ mapping.Operation, rule, tracker string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, each := range d.table.Rules {
			if each.Name == rule {
				rule += fmt.Sprintf(" (reads %s, writes %s)", each.Reads, each.Writes)
			}
		}
		d.decisions = append(d.decisions, fmt.Sprintf("rule         %s: %s answers\n", rule, tracker))
	}}
	for name := range settings.Locate {
		settings.Locate[name] = switchover.NoLookups{Note: func(question string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lookups = append(d.lookups, question+", asked of "+name)
		}}
	}
}

// Answered implements upstream.Shadow.
func (d *dryRun) Answered(_ context.Context, _ upstream.Caller, _ upstream.Call, sides upstream.Sides, response upstream.Response) *mapping.Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decisions = append(d.decisions, fmt.Sprintf("compared     %s, by the sample of canary\n", sides.Compared))
	return response.Document
}

// Wrote implements upstream.Shadow.
func (d *dryRun) Wrote(upstream.Call) {}

// dryTracker takes the place of the connections to a tracker.
type dryTracker struct {
	dry  *dryRun
	name string
}

// RoundTrip implements http.RoundTripper. It keeps the request, and responds with what suits every operation.
func (t dryTracker) RoundTrip(r *http.Request) (*http.Response, error) {
	lines, content, err := bugzilla.ShowRequest(r)
	if err != nil {
		return nil, err
	}
	text := "the tracker  gets " + strings.Join(lines, "\n             ") + "\n"
	if len(content) > 0 {
		text += string(content) + "\n"
	}
	t.dry.mu.Lock()
	defer t.dry.mu.Unlock()
	t.dry.sent[t.name] = text
	body := `{"id":0,"ids":[],"bug":[],"attachment":[],"bugs":{},"attachments":{},"flagtypes":[]}`
	if strings.HasSuffix(r.URL.Path, "/jsonrpc.cgi") {
		body = `{"error":null,"id":1,"result":` + body + `}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}
