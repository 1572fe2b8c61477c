package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"portico/proxy/admin"
)

// How many spans wait for their turn, how many are sent at a time, and how long the
// first of them waits for others.
const (
	spansWaiting = 2048
	spansAtOnce  = 256
	spansEvery   = time.Second
)

// Why spans were dropped, as a label of the metric.
const (
	dropQueueFull = "queue-full"
	dropNotSent   = "not-sent"
	dropStopped   = "stopped"
)

// spanQueue is a sdktrace.SpanProcessor that sends spans in batches and never lets
// anybody wait. The library has one too, which does not tell what it drops.
type spanQueue struct {
	exporter sdktrace.SpanExporter
	metrics  *admin.Metrics
	logger   *slog.Logger
	spans    chan sdktrace.ReadOnlySpan

	// stopping asks run for the rest, cancel for the end.
	stopping chan struct{}
	stopped  atomic.Bool
	ctx      context.Context //nolint:containedctx // the one that ends the goroutine
	cancel   context.CancelFunc
	done     chan struct{}
	// failing belongs to run: the last batch was not sent.
	failing bool
}

// newSpanQueue starts the goroutine that Shutdown ends.
func newSpanQueue(exporter sdktrace.SpanExporter, metrics *admin.Metrics, logger *slog.Logger) *spanQueue {
	q := &spanQueue{
		exporter: exporter, metrics: metrics, logger: logger, spans: make(chan sdktrace.ReadOnlySpan, spansWaiting),
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements sdktrace.SpanProcessor.
func (q *spanQueue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (q *spanQueue) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.stopped.Load() {
		q.metrics.SpansDropped(dropStopped, 1)
		return
	}
	select {
	case q.spans <- span:
	default:
		q.metrics.SpansDropped(dropQueueFull, 1)
	}
}

// ForceFlush implements sdktrace.SpanProcessor. Nobody waits for spans: they are
// flushed by Shutdown alone.
func (q *spanQueue) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdktrace.SpanProcessor: it sends what is left until ctx is over,
// and counts what is left then.
func (q *spanQueue) Shutdown(ctx context.Context) error {
	if q.stopped.Swap(true) {
		return nil
	}
	close(q.stopping)
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	q.cancel()
	<-q.done
	return nil
}

func (q *spanQueue) run() {
	defer close(q.done)
	tick := time.NewTicker(spansEvery)
	defer tick.Stop()
	batch := make([]sdktrace.ReadOnlySpan, 0, spansAtOnce)
	for {
		select {
		case span := <-q.spans:
			if batch = append(batch, span); len(batch) < spansAtOnce {
				continue
			}
		case <-tick.C:
		case <-q.stopping:
			q.rest(batch)
			return
		}
		q.send(batch)
		clear(batch)
		batch = batch[:0]
	}
}

// rest sends what is left.
func (q *spanQueue) rest(batch []sdktrace.ReadOnlySpan) {
	for {
		select {
		case span := <-q.spans:
			if batch = append(batch, span); len(batch) < spansAtOnce {
				continue
			}
			q.send(batch)
			batch = batch[:0]
		default:
			q.send(batch)
			return
		}
	}
}

// send sends a batch or counts it as dropped.
func (q *spanQueue) send(batch []sdktrace.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(q.ctx, exportTimeout)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, batch)
	if err == nil {
		q.metrics.SpansSent(len(batch))
	} else {
		q.metrics.SpansDropped(dropNotSent, len(batch))
	}
	q.tell(err)
}

// tell writes to the log when the collector falls silent and when it is back.
func (q *spanQueue) tell(err error) {
	switch {
	case err != nil && !q.failing:
		q.logger.Warn("traces cannot be sent; they are dropped and counted", "cause", exportCause(err))
	case err == nil && q.failing:
		q.logger.Info("traces are sent again")
	}
	q.failing = err != nil
}

// exportCause is what a log may say of a failure: how the network failed, and not what
// the collector says, which may be long and anybody's data.
func exportCause(err error) string {
	if address, ok := errors.AsType[*url.Error](err); ok {
		return address.Err.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "the collector did not answer in time"
	}
	return "the collector did not take them"
}
