package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream/bugzilla"
)

// explainCommand is portico explain.
func explainCommand() command {
	return command{
		name:      "explain",
		arguments: "[--config FILE | --tracker URL] [--header 'NAME: VALUE'] [--data BODY] METHOD PATH",
		summary:   "tell what would become of one request, without sending anything",
		details: "Take a request through the same rooms as portico serve and print every decision: what it\n" +
			"is, what the tracker would be sent for it, or why it is refused. Credentials are not shown.",
		prepare: func(fs *flag.FlagSet) runner {
			flags := registerConfigFlags(fs)
			question := question{header: http.Header{}}
			fs.StringVar(&question.data, "data", "", "the request's body is `BODY`")
			fs.Func("header", "the request has the header `'NAME: VALUE'`; may be given often", question.addHeader)
			return func(ctx context.Context, env environment, args []string) (int, error) {
				if len(args) < 2 {
					return exitUsage, usageError{"needs a method and a path"}
				}
				// Flags may follow the path as well as stand before the method.
				if err := fs.Parse(args[2:]); err != nil || fs.NArg() > 0 {
					return exitUsage, usageError{"takes one method and one path"}
				}
				cfg, ok, err := flags.orExample().loadOrReport(env)
				if err != nil || !ok {
					return exitFailed, err
				}
				question.method, question.path = args[0], args[1]
				if err := question.explain(ctx, env, cfg); err != nil {
					return exitFailed, err
				}
				return exitOK, nil
			}
		},
	}
}

// orExample stands in for a tracker where none is named: nothing is sent to it.
func (c *configFlags) orExample() *configFlags {
	if !c.tracker && c.file == "" {
		c.tracker = true
		c.settings = append(c.settings, Setting{Path: "trackers.main.url", Value: "http://tracker.example/", Source: "portico explain"})
	}
	return c
}

// question is a request to be explained.
type question struct {
	method, path, data string
	header             http.Header
}

func (q *question) addHeader(text string) error {
	name, value, found := strings.Cut(text, ":")
	if !found {
		return usageError{"a header is NAME: VALUE"}
	}
	q.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

// explain takes the request through the rooms and prints what became of it.
func (q *question) explain(ctx context.Context, env environment, cfg Config) error {
	rooms, err := newScenery(ctx, cfg, env.variable)
	if err != nil {
		return err
	}
	defer rooms.close()
	usual, record := rooms.bases[cfg.Primary], &lastRecord{}
	front, err := proxy.New(proxy.Options{
		Tracker: rooms.tracker(cfg), Responses: proxy.Responses(cfg.Responses), Observer: record, Logger: slog.New(slog.DiscardHandler),
		Limits:  proxy.Limits{Limits: (&builder{cfg: cfg}).bodyLimits(), IDs: cfg.Limits.IDs},
		BlobDir: cfg.Blobs.Dir, TrustedProxies: cfg.TrustedProxies, DocumentationURL: cfg.API.Documentation,
		Passthrough: proxy.Passthrough{
			Base: usual.Base, Transport: usual.Transport, HeaderCredentials: usual.HeaderCredentials,
			Prefixes: cfg.Passthrough, Choose: rooms.choose, Failure: bugzilla.Failure,
		},
	})
	if err != nil {
		return err
	}
	request, err := q.request(ctx)
	if err != nil {
		return usageError{err.Error()}
	}
	answer := &answerBuffer{header: http.Header{}}
	front.ServeHTTP(answer, request)
	q.print(env.stdout, cfg, record.Record, rooms, answer)
	return nil
}

func (q *question) request(ctx context.Context) (*http.Request, error) {
	address := q.path // as it is said to a proxy
	switch {
	case strings.HasPrefix(q.path, "/"):
		address = "http://portico.example" + q.path
	case !strings.HasPrefix(q.path, "http://") && !strings.HasPrefix(q.path, "https://"):
		return nil, errors.New("the path is none: it must begin with /")
	}
	request, err := http.NewRequestWithContext(ctx, q.method, address, strings.NewReader(q.data))
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("the path is none: %w", wrong.Err) // without the address, which may hold a key
	}
	if err != nil {
		return nil, fmt.Errorf("the request is none: %w", err)
	}
	request.Header, request.RequestURI, request.RemoteAddr = q.header, q.path, "127.0.0.1:1"
	return request, nil
}

func (q *question) print(w io.Writer, cfg Config, record proxy.Record, rooms *scenery, answer *answerBuffer) {
	path, _, _ := strings.Cut(q.path, "?")
	fmt.Fprintf(w, "request      %s %s\noperation    %s\n", q.method, path, record.Operation)
	passing := record.Operation == proxy.OpPassthrough && record.Reason == ""
	rooms.print(w, cfg, passing, q.method != http.MethodGet && q.method != http.MethodHead && q.method != http.MethodOptions)
	shown := 0
	for _, name := range []string{cfg.Primary, cfg.Candidate} {
		if asked := rooms.asked[name]; asked != nil && asked.method != "" {
			fmt.Fprintf(w, "dialect      %s\n", rooms.dialects[name])
			asked.print(w)
			shown++
		}
	}
	if shown > 0 {
		return
	}
	fmt.Fprintf(w, "dialect      %s\nthe tracker  is not asked\n", rooms.dialects[cfg.Primary])
	if len(rooms.told.looked) > 0 {
		return
	}
	fmt.Fprintf(w, "the client   gets %d", answer.status)
	if reason := answer.header.Get("Portico-Error"); reason != "" {
		fmt.Fprintf(w, " (%s)", reason)
	}
	fmt.Fprintf(w, "\n%s\n", answer.body.Bytes())
}

// print shows what a tracker would be sent.
func (n *notSent) print(w io.Writer) {
	fmt.Fprintf(w, "the tracker  gets %s %s\n", n.method, n.address)
	for _, name := range sortedKeys(n.header) {
		if n.header.Get(name) == "" {
			continue
		}
		fmt.Fprintf(w, "             %s: %s\n", name, strings.Join(n.header[name], ", "))
	}
	if len(n.body) > 0 {
		fmt.Fprintf(w, "%s\n", n.body)
	}
}

// notSent is a transport that keeps the request, without its credentials, and
// gives an answer that satisfies every operation.
type notSent struct {
	method, address string
	header          http.Header
	body            []byte
}

// RoundTrip implements http.RoundTripper.
func (n *notSent) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte(nil)
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = text
	}
	n.method, n.address, n.header = r.Method, redactQuery(*r.URL), withoutSecrets(r.Header)
	if len(body) > 0 {
		n.body = redactBody(body)
	}
	answer := `{"id":0,"ids":[],"bug":[],"attachment":[],"bugs":{},"attachments":{},"flagtypes":[]}`
	if strings.HasSuffix(r.URL.Path, "/jsonrpc.cgi") {
		answer = `{"error":null,"id":1,"result":` + answer + `}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: r,
	}, nil
}

// redactQuery hides the credentials in a URL's query and shows the rest.
func redactQuery(address url.URL) string {
	query := address.Query()
	for name := range query {
		if secretName(name) {
			query.Set(name, redacted)
		}
	}
	address.RawQuery, address.User = query.Encode(), nil
	return address.String()
}

// secretName tells the parameters and members that carry credentials.
func secretName(name string) bool {
	switch strings.TrimPrefix(strings.ToLower(name), "bugzilla_") {
	case "api_key", "login", "password", "token":
		return true
	default:
		return false
	}
}

// withoutSecrets hides the values of headers that carry credentials.
func withoutSecrets(header http.Header) http.Header {
	shown := header.Clone()
	for _, name := range []string{"Authorization", "Cookie", "X-Bugzilla-Api-Key", "X-Bugzilla-Token", "X-Bugzilla-Login", "X-Bugzilla-Password"} {
		if shown.Get(name) != "" {
			shown.Set(name, redacted)
		}
	}
	return shown
}

// redactBody hides the credentials in a JSON body, in the parameters of a
// procedure call too; anything else than JSON is only counted.
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
		if secretName(member.Name) {
			members.SetText(member.Name, redacted)
		}
	}
	return members.AppendJSON(nil)
}

// lastRecord keeps what the facade made of the request.
type lastRecord struct{ proxy.Record }

// Finished implements proxy.Observer.
func (l *lastRecord) Finished(record proxy.Record) { l.Record = record }

// answerBuffer is an http.ResponseWriter in memory.
type answerBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answerBuffer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answerBuffer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answerBuffer) Write(p []byte) (int, error) { return a.body.Write(p) }
