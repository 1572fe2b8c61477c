package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portico/cache"
	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream/recording"
	"portico/upstream/switchover"
)

// explainCommand is portico explain.
func explainCommand(env environment) *cobra.Command {
	a, header, body := &adminClient{output: output{env: env}}, http.Header{}, ""
	var c *cobra.Command
	var flags *config.Flags
	c = command("explain METHOD PATH", "show how one request would be handled, without sending anything", func(ctx context.Context, args []string) error {
		request, err := newRequest(ctx, args[0], args[1], body)
		if err != nil {
			return err
		}
		request.Header = header
		named := flags.Tracker() || flags.File != ""
		if !named { // nothing is sent to it
			flags.Settings = append(flags.Settings, config.Setting{Path: "trackers.main.url", Value: "http://tracker.example/", Source: "portico explain"})
		}
		cfg, err := load(flags, env)
		if err != nil {
			return err
		}
		running := &runningState{unknown: "no configuration is named", table: cfg.Switchover.Table()}
		if named {
			if !c.Flags().Changed("admin") {
				a.address = adminURL(cfg)
			}
			running.ask(ctx, a, &cfg, args[1])
		}
		explanation, err := app.Explain(request, cfg, running.table)
		if err != nil {
			return err
		}
		path, _, _ := strings.Cut(args[1], "?")
		var text strings.Builder
		fmt.Fprintf(&text, "request      %s %s\noperation    %s\n", request.Method, path, explanation.Record.Operation)
		running.print(&text, cfg)
		printExplanation(&text, explanation)
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		return a.value(map[string]any{"operation": explanation.Record.Operation, "lines": lines}, says("%s", &text))
	})
	c.Long = `Take a request through the same components as portico serve and print every decision: what it
is, what the tracker would be sent for it, or why it is refused. Credentials are not shown.
The admin listener of the running Portico is asked for the active rules, the dialects and the
cache. Where it does not respond, the configuration counts, and what is not known is listed.`
	flags = config.RegisterFlags(c.Flags())
	a.connectionFlags(c.Flags())
	a.output.flags(c.Flags())
	c.Flags().StringVar(&body, "data", "", "the request's body is `BODY`")
	c.Flags().Func("header", "the request has the header `'NAME: VALUE'`; may be given often", func(text string) error {
		name, value, found := strings.Cut(text, ":")
		if !found {
			return errors.New("a header is NAME: VALUE")
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		return nil
	})
	return c
}

// newRequest is a request as Portico would read it from a client.
func newRequest(ctx context.Context, method, path, body string) (*http.Request, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, usageError("invalid path: must begin with /")
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://portico.example"+path, strings.NewReader(body))
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return nil, usageError("invalid path: %w", wrong.Err) // without the address, which may hold a key
	}
	if err != nil {
		return nil, usageError("invalid request: %w", err)
	}
	request.RequestURI, request.RemoteAddr = path, "127.0.0.1:1"
	return request, nil
}

// runningState is what a running Portico with the same trackers says of itself.
type runningState struct {
	address string
	// unknown, when not empty, is why there is no such Portico.
	unknown string
	// table has the active rules: those of the running Portico, or else of the configuration.
	table switchover.Table
	// moves is nil where there is one tracker only.
	moves *switchover.Status
	// cached is what it holds for a flag type read.
	cached []cache.Item
}

// runningTimeout bounds all calls of explain to a running Portico.
const runningTimeout = 3 * time.Second

// adminURL is where the admin listener of a configuration is.
func adminURL(cfg config.Config) string {
	if cfg.Admin.TLS.On() {
		host, port, _ := net.SplitHostPort(cfg.Admin.Listen)
		if strings.Trim(host, "0.:") == "" {
			host = "localhost" // no certificate is for all addresses
		}
		return "https://" + net.JoinHostPort(host, port)
	}
	return "http://" + cfg.Admin.Listen
}

// ask calls the admin listener. The configuration gets the dialects that the running Portico has found out.
func (s *runningState) ask(ctx context.Context, a *adminClient, cfg *config.Config, path string) {
	ctx, cancel := context.WithTimeout(ctx, runningTimeout)
	defer cancel()
	s.address, s.unknown = config.RedactURL(a.address), ""
	a.token = cfg.Admin.Token.Text()
	found, err := read[admin.Status](ctx, a, "/status")
	if err != nil {
		s.unknown = err.Error()
		return
	}
	for name, t := range found.Trackers {
		if found.Primary != cfg.Primary || t.URL != config.RedactURL(cfg.Trackers[name].URL) {
			s.unknown = "the Portico at " + s.address + " has other trackers"
			return
		}
	}
	for name, t := range found.Trackers {
		if settings := cfg.Trackers[name]; t.DialectPinned && settings.Dialect == "auto" {
			settings.Dialect = t.Dialect
			cfg.Trackers[name] = settings
		}
	}
	if found.Switchover != nil {
		if s.moves, err = read[*switchover.Status](ctx, a, statusPath); err != nil {
			s.unknown = err.Error()
			return
		}
		s.table = s.moves.Table
		if s.moves.Killed != nil {
			s.table = switchover.Table{Rules: []switchover.Rule{{Name: "kill switch", Reads: switchover.PhaseOld, Writes: switchover.PhaseOld}}}
		}
	}
	s.cached = cachedFor(ctx, a, path)
}

// cachedFor returns what is cached for a flag type read, whichever tracker responded and for whichever callers; without a cache there is nothing.
func cachedFor(ctx context.Context, a *adminClient, path string) []cache.Item {
	operation, names := recording.Segments(http.MethodGet, path)
	if operation != mapping.OpFlagTypes {
		return nil
	}
	query := url.Values{}
	for i, key := range []string{"product", "component"}[:len(names)] {
		name, _ := url.PathUnescape(names[i]) // newRequest has taken it
		query.Set(key, name)
	}
	found, _ := read[cachedItems](ctx, a, "/cache?"+query.Encode())
	return slices.DeleteFunc(found.Items, func(item cache.Item) bool { return item.Component != "" && len(names) == 1 })
}

// print says what is known of the running Portico and what is not.
func (s *runningState) print(w io.Writer, cfg config.Config) {
	if rate := cfg.Limits.Rate; rate.Anonymous.PerSecond+rate.Keyed.PerSecond > 0 {
		fmt.Fprintf(w, "rate         anonymous %d/s, with a credential %d/s (0 is no limit); not known here: how much the caller has used\n",
			rate.Anonymous.PerSecond, rate.Keyed.PerSecond)
	}
	if len(cfg.Switchover.IDs) > 0 {
		fmt.Fprintln(w, "ids          not known here: the trackers are shown the ids that clients know")
	}
	if s.unknown != "" {
		var missing []string
		if cfg.Candidate != "" {
			missing = append(missing, "rules that operators have applied")
		}
		if cfg.Cache.Scope != "off" {
			missing = append(missing, "what is cached")
		}
		missing = append(missing, "dialects that were found out")
		fmt.Fprintf(w, "not known    %s: %s\n", strings.Join(missing, ", "), s.unknown)
		return
	}
	if s.moves != nil {
		fmt.Fprintf(w, "rules        version %d of the Portico at %s, source %s", s.moves.Version, s.address, s.moves.Source)
		if s.moves.Actor != "" {
			fmt.Fprintf(w, ", by %s: %s", s.moves.Actor, s.moves.Reason)
		}
		fmt.Fprintln(w)
	}
	for _, item := range s.cached {
		fmt.Fprintf(w, "cache        response of %s for the scope %s: %s, %s\n", item.Tracker, item.Scope, item.State, item.Why)
	}
}

// printExplanation writes which rules count and what the trackers would be sent, or else what the client gets.
func printExplanation(w io.Writer, e *app.Explanation) {
	if len(e.Rules.Lookups) > 0 {
		fmt.Fprintf(w, "the rules    need a lookup, which explain does not send: %s\n", strings.Join(e.Rules.Lookups, "; "))
	} else {
		for _, decision := range e.Rules.Decisions {
			fmt.Fprintf(w, "%-12s %s\n", decision.Kind, decision.Text)
		}
	}
	for _, name := range []string{e.Config.Primary, e.Config.Candidate} {
		sent, asked := e.Sent[name]
		if !asked {
			continue
		}
		if e.Config.Candidate != "" && e.Record.Operation == proxy.OpPassthrough {
			fmt.Fprintf(w, "rule         of the passthrough: %s answers\n", name)
		}
		fmt.Fprintf(w, "dialect      %s\nthe tracker  gets %s\n", e.Config.Trackers[name].Dialect, strings.Join(sent.Lines, "\n             "))
		if len(sent.Body) > 0 {
			fmt.Fprintf(w, "%s\n", sent.Body)
		}
	}
	if len(e.Sent) > 0 {
		return
	}
	fmt.Fprintf(w, "dialect      %s\nthe tracker  is not asked\n", e.Config.Trackers[e.Config.Primary].Dialect)
	if len(e.Rules.Lookups) > 0 {
		return
	}
	fmt.Fprintf(w, "the client   gets %d", e.Status)
	if reason := e.Header.Get("Portico-Error"); reason != "" {
		fmt.Fprintf(w, " (%s)", reason)
	}
	fmt.Fprintf(w, "\n%s\n", e.Body.Bytes())
}
