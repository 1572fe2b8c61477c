package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream/transport"
)

// tracing makes spans of requests and of calls to trackers. What it says of them is
// chosen word by word: no path, no query, no header and no name of an object can get
// into a span, and credentials with them. Attributes are called as the semantic
// conventions of OpenTelemetry call them, or portico.….
type tracing struct{ tracer trace.Tracer }

// routes are the paths of the operations as the interface writes them.
var routes = map[mapping.Operation]string{
	mapping.OpFlagTypes:         "/rest/flag_type/{product}/{component}",
	mapping.OpCreateFlagType:    "/rest/flag_type",
	mapping.OpUpdateFlagTypes:   "/rest/flag_type/{id_or_name}",
	mapping.OpBugAttachments:    "/rest/bug/{bug_id}/attachment",
	mapping.OpAttachment:        "/rest/bug/attachment/{attachment_id}",
	mapping.OpCreateAttachment:  "/rest/bug/{bug_id}/attachment",
	mapping.OpUpdateAttachments: "/rest/bug/attachment/{attachment_id}",
}

// Start implements proxy.Tracer. The name is given at the end, when it is known what
// was asked.
func (t *tracing) Start(r *http.Request, arrived time.Time) (context.Context, proxy.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(arrived))
	return ctx, requestSpan{span, methodWord(r.Method)}
}

// requestSpan is the span of a client's request.
type requestSpan struct {
	span   trace.Span
	method string
}

// End implements proxy.Span.
func (s requestSpan) End(record proxy.Record) {
	defer s.span.End()
	if !s.span.IsRecording() {
		return
	}
	s.span.SetName(string(record.Operation))
	s.span.SetAttributes(
		attribute.String("http.request.method", s.method),
		attribute.String("portico.operation", string(record.Operation)),
		attribute.String("portico.request_id", record.ID),
	)
	s.put("http.route", routes[record.Operation])
	s.put("portico.cache", record.CacheOutcome())
	s.put("portico.reason", string(record.Reason))
	if record.Status == 0 || record.Status == proxy.StatusClientGone {
		return // no answer was sent, which is the client's own choice or a connection's end
	}
	s.span.SetAttributes(attribute.Int("http.response.status_code", record.Status))
	if record.Status >= http.StatusInternalServerError || record.Status < http.StatusBadRequest && record.Reason != "" {
		markFailed(s.span, cmp.Or(string(record.Reason), strconv.Itoa(record.Status)))
	}
}

// put sets an attribute that is not always there.
func (s requestSpan) put(name, value string) {
	if value != "" {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// calls gives the function that follows calls to a tracker for clients' requests; nil
// where nothing is traced.
func (t *tracing) calls(tracker string) transport.Trace {
	if t == nil {
		return nil
	}
	return func(req *http.Request) (*http.Request, transport.Observer) { return t.call(tracker, req) }
}

// call begins the span of a call. What no request asks for has none. The tracker is
// told of the trace, sampled or not, and never of another one that the client named.
func (t *tracing) call(tracker string, req *http.Request) (*http.Request, transport.Observer) {
	ctx := req.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return req, nil
	}
	operation := cmp.Or(transport.Operation(ctx), string(proxy.OpPassthrough))
	ctx, span := t.tracer.Start(ctx, "tracker "+operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(transport.Begun(ctx)))
	req = req.WithContext(ctx)
	if req.Header = req.Header.Clone(); req.Header == nil {
		req.Header = http.Header{}
	}
	for _, name := range (propagation.TraceContext{}).Fields() {
		req.Header.Del(name)
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("portico.tracker", tracker), attribute.String("portico.operation", operation),
			attribute.String("http.request.method", methodWord(req.Method)),
			attribute.String("server.address", req.URL.Hostname()), attribute.Int("server.port", portOf(req)),
		)
	}
	return req, callSpan{span}
}

// callSpan is the span of a call to a tracker.
type callSpan struct{ span trace.Span }

// Observe implements transport.Observer: the call has ended.
func (s callSpan) Observe(sample transport.Sample) {
	defer s.span.End()
	if !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(
		attribute.String("portico.outcome", cmp.Or(string(sample.Reason), "ok")), attribute.Int("portico.tries", sample.Tries),
	)
	if sample.Tries > 1 {
		s.span.SetAttributes(attribute.Int("http.request.resend_count", sample.Tries-1))
	}
	if sample.Unknown {
		s.span.SetAttributes(attribute.Bool("portico.outcome_unknown", true))
	}
	if sample.Status > 0 {
		s.span.SetAttributes(attribute.Int("http.response.status_code", sample.Status))
	}
	failed := sample.Reason != "" && sample.Reason != transport.Canceled
	if failed || sample.Status >= http.StatusInternalServerError {
		markFailed(s.span, cmp.Or(string(sample.Reason), strconv.Itoa(sample.Status)))
	}
}

// markFailed says that what a span stands for went wrong, in one word of why. What
// clients did wrong is no failure.
func markFailed(span trace.Span, why string) {
	span.SetAttributes(attribute.String("error.type", why))
	span.SetStatus(codes.Error, "")
}

// methodWord is a method as an attribute: any other text than the known ones could be
// anything.
func methodWord(method string) string {
	known := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}
	if method == "" {
		return http.MethodGet
	}
	if !slices.Contains(known, method) {
		return "_OTHER"
	}
	return method
}

// portOf is the port of a tracker.
func portOf(req *http.Request) int {
	if port, err := strconv.Atoi(req.URL.Port()); err == nil {
		return port
	}
	if req.URL.Scheme == "https" {
		return 443
	}
	return 80
}
