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
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
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
		settings.Locate[name] = dryTracker{d, name}
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

// dryTracker takes the place of the connections to a tracker and of lookups in it.
type dryTracker struct {
	dry  *dryRun
	name string
}

// lookup notes a lookup, and returns the error that ends the request there.
func (t dryTracker) lookup(format string, args ...any) error {
	t.dry.mu.Lock()
	defer t.dry.mu.Unlock()
	t.dry.lookups = append(t.dry.lookups, fmt.Sprintf(format, args...)+", asked of "+t.name)
	return &mapping.Error{
		Code: mapping.CodeUnavailable, Status: http.StatusServiceUnavailable, Reason: mapping.ReasonSwitchover, Message: "Nothing is looked up here.",
	}
}

// Bug implements switchover.Locator.
func (t dryTracker) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	return mapping.Place{}, t.lookup("the product and component of bug %s", ref)
}

// AttachmentBug implements switchover.Locator.
func (t dryTracker) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	return 0, t.lookup("the bug of attachment %d", id)
}

// FlagTypePlaces implements switchover.Locator.
func (t dryTracker) FlagTypePlaces(_ context.Context, _ upstream.Caller, ids []int64, names []string) ([]string, []mapping.Scopes, error) {
	return nil, nil, t.lookup("the products of the flag types %s", strings.TrimSpace(strings.Trim(fmt.Sprint(ids), "[]")+" "+strings.Join(names, " ")))
}

// RoundTrip implements http.RoundTripper. It keeps the request, and responds with what suits every operation.
func (t dryTracker) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := requestText(r)
	if err != nil {
		return nil, err
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

// requestText renders a request to a tracker without its credentials.
func requestText(r *http.Request) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "the tracker  gets %s %s\n", r.Method, redactQuery(*r.URL))
	if r.Host != "" && r.Host != r.URL.Host {
		fmt.Fprintf(&text, "             Host: %s\n", r.Host)
	}
	for _, name := range config.SortedKeys(r.Header) {
		value := strings.Join(r.Header[name], ", ")
		switch name {
		case "Authorization", "Cookie", "X-Bugzilla-Api-Key", "X-Bugzilla-Token", "X-Bugzilla-Login", "X-Bugzilla-Password":
			value = config.Redacted
		}
		if r.Header.Get(name) != "" {
			fmt.Fprintf(&text, "             %s: %s\n", name, value)
		}
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return "", err
		}
		if len(body) > 0 {
			fmt.Fprintf(&text, "%s\n", redactBody(body))
		}
	}
	return text.String(), nil
}

// redactQuery hides the credentials in the query of a URL.
func redactQuery(address url.URL) string {
	query := address.Query()
	for name := range query {
		if isCredential(name) {
			query.Set(name, config.Redacted)
		}
	}
	address.RawQuery, address.User = query.Encode(), nil
	return address.String()
}

// isCredential reports whether a parameter or member carries a credential.
func isCredential(name string) bool {
	switch strings.TrimPrefix(strings.ToLower(name), "bugzilla_") {
	case "api_key", "login", "password", "token":
		return true
	}
	return false
}

// redactBody hides the credentials in a JSON body, also in the parameters of a procedure call. Of another body it shows the length.
func redactBody(body []byte) []byte {
	members, err := mapping.ParseMembers(body)
	if err != nil {
		return fmt.Appendf(nil, "(%d bytes)", len(body))
	}
	if params := members.Get("params"); params != nil {
		inner := redactBody(bytes.TrimSuffix(bytes.TrimPrefix(params, []byte("[")), []byte("]")))
		members.Set("params", jsontext.Value("["+string(inner)+"]"))
	}
	for _, member := range members {
		if isCredential(member.Name) {
			members.SetText(member.Name, config.Redacted)
		}
	}
	return members.AppendJSON(nil)
}
