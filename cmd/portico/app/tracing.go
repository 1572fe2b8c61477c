package app

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"portico/proxy"
	"portico/upstream/transport"
)

const (
	// exportTimeout bounds the time to send one batch of spans, and flushTimeout the time to send the last spans of a
	// runtime.
	exportTimeout = 10 * time.Second
	flushTimeout  = 3 * time.Second
	// maxSpansWaiting bounds the queue of spans, maxSpansAtOnce a batch. A batch is sent spanDelay after its first span.
	maxSpansWaiting = 2048
	maxSpansAtOnce  = 256
	spanDelay       = time.Second
	// otherMethod stands for every method that is not registered.
	otherMethod = "_OTHER"
)

// tracing makes spans of requests and of calls to trackers. Attributes hold words of a fixed set, numbers, request ids and names from
// the configuration: no path, query, header or name of an object, and so no credential. They are named as in the semantic conventions
// of OpenTelemetry, or portico.….
type tracing struct{ tracer trace.Tracer }

// openTracing starts what sends spans, if there is a collector. The library sends them in batches, drops them while its queue is full,
// and lets no request wait.
func (rt *Runtime) openTracing() error {
	settings := &rt.cfg.Traces
	if settings.Endpoint == "" {
		return nil
	}
	collector, err := rt.newCollector()
	if err != nil {
		return err
	}
	about, _ := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes( // it looks for nothing
		attribute.String("service.name", "portico"), attribute.String("service.version", ThisVersion())))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(settings.Sample))),
		sdktrace.WithBatcher(otlptrace.NewUnstarted(collector), sdktrace.WithMaxQueueSize(maxSpansWaiting), sdktrace.WithMaxExportBatchSize(maxSpansAtOnce),
			sdktrace.WithBatchTimeout(spanDelay), sdktrace.WithExportTimeout(exportTimeout)))
	rt.tracing = &tracing{provider.Tracer("portico")}
	rt.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // spans that were not sent are counted
	})
	return nil
}

// Start implements proxy.Tracer. The span gets its name at the end, when the operation is known.
func (t *tracing) Start(r *http.Request, arrived time.Time) (context.Context, proxy.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(arrived))
	setTexts(span, "http.request.method", proxy.MethodName(r.Method, otherMethod))
	return ctx, requestSpan{span}
}

// requestSpan is the span of a client's request.
type requestSpan struct{ span trace.Span }

// TraceID implements proxy.Span.
func (s requestSpan) TraceID() (id string, sampled bool) {
	about := s.span.SpanContext()
	return about.TraceID().String(), about.IsSampled()
}

// End implements proxy.Span.
func (s requestSpan) End(record proxy.Record) {
	route := record.Route
	if route != "" {
		route = "/rest" + route
	}
	s.span.SetName(string(record.Operation))
	setTexts(s.span,
		"portico.operation", string(record.Operation), "portico.request_id", record.ID,
		"http.route", route, "portico.cache", record.CacheOutcome(), "portico.reason", string(record.Reason))
	if record.Status != 0 && record.Status != proxy.StatusClientGone { // without a response the client has gone, which is no failure
		failed := record.Status < http.StatusBadRequest && record.Reason != ""
		setOutcome(s.span, record.Status, string(record.Reason), failed)
	}
	s.span.End()
}

// call begins the span of a call to a tracker; a call that belongs to no request has none. The tracker gets the trace, sampled or not,
// instead of what the client sent.
func (t *tracing) call(tracker string, req *http.Request, begun time.Time) (*http.Request, transport.Observer) {
	ctx := req.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return req, nil
	}
	operation := transport.CallOf(ctx).Operation
	ctx, span := t.tracer.Start(ctx, "tracker "+operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(begun))
	req = req.WithContext(ctx)
	req.Header = req.Header.Clone()
	req.Header.Del("tracestate") // of the client; that of the trace may be empty
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	port, err := strconv.Atoi(req.URL.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[req.URL.Scheme]
	}
	span.SetAttributes(attribute.Int("server.port", port))
	setTexts(span, "portico.tracker", tracker, "portico.operation", operation,
		"http.request.method", proxy.MethodName(req.Method, otherMethod), "server.address", req.URL.Hostname())
	return req, callSpan{span}
}

// callSpan is the span of a call to a tracker.
type callSpan struct{ span trace.Span }

// Observe implements transport.Observer: the call has ended.
func (s callSpan) Observe(sample transport.Sample) {
	reason := string(sample.Reason)
	setTexts(s.span, "portico.outcome", cmp.Or(reason, "ok"))
	s.span.SetAttributes(attribute.Int("portico.tries", sample.Tries))
	if sample.Tries > 1 {
		s.span.SetAttributes(attribute.Int("http.request.resend_count", sample.Tries-1))
	}
	if sample.Unknown {
		s.span.SetAttributes(attribute.Bool("portico.outcome_unknown", true))
	}
	setOutcome(s.span, sample.Status, reason, reason != "" && sample.Reason != transport.Canceled)
	s.span.End()
}

// setOutcome sets the status of a response, 0 for none. The span is an error if the call failed or the status is 500 or above: a mistake
// of the client is no error. reason says why in one word.
func setOutcome(span trace.Span, status int, reason string, failed bool) {
	if status > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if failed || status >= http.StatusInternalServerError {
		setTexts(span, "error.type", cmp.Or(reason, strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
}

// setTexts sets attributes by pairs of name and value, except where the value is empty.
func setTexts(span trace.Span, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			span.SetAttributes(attribute.String(pair[0], pair[1]))
		}
	}
}
