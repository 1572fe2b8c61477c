package admin

import "github.com/prometheus/client_golang/prometheus"

// traceMetrics are those of traces on their way out.
type traceMetrics struct {
	spans        *prometheus.CounterVec
	spansDropped *prometheus.CounterVec
}

func (m *Metrics) addTraces() {
	m.spans = m.counter("trace_spans_total", "Spans that the collector of traces took.")
	m.spansDropped = m.counter("trace_spans_dropped_total", "Spans that never reached the collector of traces.", "reason")
}

// SpansSent counts spans that the collector took.
func (m *Metrics) SpansSent(n int) { m.spans.WithLabelValues().Add(float64(n)) }

// SpansDropped counts spans that never reached the collector, by one word of why.
func (m *Metrics) SpansDropped(reason string, n int) {
	m.spansDropped.WithLabelValues(m.words.bounded("spans", reason)).Add(float64(n))
}
