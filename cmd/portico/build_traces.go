package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"portico/proxy"
)

// How long sending one batch may take, all tries together, and one of them; and how
// long the last spans may take once nobody uses the house any more.
const (
	exportTimeout   = 10 * time.Second
	exportTry       = 5 * time.Second
	longestFarewell = 3 * time.Second
)

// followed builds what traces requests, if there is somewhere to send traces.
func (b *builder) followed() error {
	if b.cfg.Traces.Endpoint == "" {
		return nil
	}
	exporter, client, err := b.exporter()
	if err != nil {
		return fmt.Errorf("set up traces: %w", err)
	}
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "portico"), attribute.String("service.version", programVersion())))
	if err != nil {
		return fmt.Errorf("set up traces: %w", err)
	}
	queue := newSpanQueue(exporter, b.house.metrics, b.logger)
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(queue),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(b.cfg.Traces.Sample))))
	b.house.tracing = &tracing{tracer: provider.Tracer("portico")}
	b.house.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), longestFarewell)
		defer cancel()
		// What was not sent in time is counted and told by the queue.
		_ = errors.Join(provider.Shutdown(ctx), exporter.Shutdown(ctx))
		client.CloseIdleConnections()
	})
	return nil
}

// exporter makes what sends spans. The client is one of its own: the library's obeys
// variables of the environment, follows redirects and shares its connections.
func (b *builder) exporter() (sdktrace.SpanExporter, *http.Client, error) {
	settings := &b.cfg.Traces
	headers, err := settings.Headers(b.lookup)
	if err != nil {
		return nil, nil, err
	}
	secured, err := settings.TLS().Client()
	if err != nil {
		return nil, nil, err
	}
	address, err := url.Parse(settings.Endpoint)
	if err != nil {
		return nil, nil, errors.New("the endpoint cannot be read")
	}
	if !strings.HasSuffix(strings.TrimRight(address.Path, "/"), "/v1/traces") {
		address = address.JoinPath("v1", "traces")
	}
	client := &http.Client{
		Timeout:       exportTry,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:     (&net.Dialer{Timeout: b.cfg.Timeouts.Connect}).DialContext,
			TLSClientConfig: secured, TLSHandshakeTimeout: b.cfg.Timeouts.Connect,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
		},
	}
	exporter, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(address.String()), otlptracehttp.WithHeaders(headers), otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf), otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 250 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: exportTimeout,
		}))
	return exporter, client, err
}

// tracer is who follows requests, nobody where nothing is traced.
func (h *house) tracer() proxy.Tracer {
	if h.tracing == nil {
		return nil
	}
	return h.tracing
}
