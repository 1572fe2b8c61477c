package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"portico/cmd/portico/config"
	"portico/proxy/admin"
)

// collector is an otlptrace.Client: it sends batches of spans by OTLP over HTTP, and counts those that were sent and those that could
// not be sent. The library calls UploadTraces from one goroutine. otlptracehttp would do the same, but it contains gRPC, obeys
// variables of the environment and logs the collector's response.
type collector struct {
	url     string
	headers map[string]string
	client  *http.Client
	metrics *admin.Metrics
	logger  *slog.Logger
	failing bool // the last batch was not sent
}

func (rt *Runtime) newCollector() (*collector, error) {
	settings, connect := &rt.cfg.Traces, rt.cfg.Timeouts.Connect
	headers, err := settings.ReadHeaders()
	if err != nil {
		return nil, err
	}
	secured, err := config.TLSFiles{CAFile: settings.CAFile}.Client()
	if err != nil {
		return nil, err
	}
	return &collector{
		url:     strings.TrimSuffix(strings.TrimRight(settings.Endpoint, "/"), "/v1/traces") + "/v1/traces",
		headers: headers, metrics: rt.metrics, logger: rt.logger,
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext:     (&net.Dialer{Timeout: connect}).DialContext,
				TLSClientConfig: secured, TLSHandshakeTimeout: connect,
				DisableKeepAlives: true, // at most one batch a second, and no connection stays open after the end
			},
		},
	}, nil
}

// Start implements otlptrace.Client.
func (c *collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client. A batch that is being sent ends with its time.
func (c *collector) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client. It returns no error: spans that were not sent are counted, and the log tells once.
func (c *collector) UploadTraces(ctx context.Context, batch []*tracepb.ResourceSpans) error {
	spans := 0
	for _, resource := range batch {
		for _, scope := range resource.ScopeSpans {
			spans += len(scope.Spans)
		}
	}
	// TracesData has the wire form of ExportTraceServiceRequest, whose package contains gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: batch})
	if err == nil {
		err = c.send(ctx, body)
	}
	if err == nil {
		c.metrics.SpansSent(spans)
		if c.failing {
			c.logger.Info("traces are sent again")
		}
	} else {
		c.metrics.SpansDropped(spans)
		if !c.failing {
			c.logger.Warn("traces cannot be sent; they are dropped and counted", "cause", err)
		}
	}
	c.failing = err != nil
	return nil
}

// send sends a batch once. Nothing of the collector's response but its status is read.
func (c *collector) send(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := c.client.Do(request)
	if err != nil {
		failed, _ := errors.AsType[*url.Error](err)
		return failed.Err
	}
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the collector responded with status %d", response.StatusCode)
	}
	return nil
}
