package admin

import "github.com/prometheus/client_golang/prometheus"

func (m *Metrics) addCanary() {
	m.comparisons = m.counter("canary_comparisons_total", "Answers of two trackers that were compared, by what came of it.", "operation", "outcome")
	m.dropped = m.counter("canary_dropped_total", "Comparisons that were not made.", "operation", "reason")
}

// Compared counts comparisons of an operation by outcome: same, noisy, transient, accepted or confirmed.
func (m *Metrics) Compared(operation, outcome string, n int64) {
	m.comparisons.WithLabelValues(m.words.bounded("operation", operation), m.words.bounded("comparison", outcome)).Add(float64(n))
}

// Dropped counts comparisons that were not made, by one word of why.
func (m *Metrics) Dropped(operation, reason string, n int64) {
	m.dropped.WithLabelValues(m.words.bounded("operation", operation), m.words.bounded("drop", reason)).Add(float64(n))
}

// CanaryQueue shows how many comparisons wait; read is asked whenever the metrics are. It is called once at most.
func (m *Metrics) CanaryQueue(read func() int) error {
	return m.registry.Register(&canaryQueue{read, describe("canary_queue", "Comparisons that wait for their turn.", nil)})
}

// canaryQueue asks for each look at the metrics.
type canaryQueue struct {
	read      func() int
	described *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (q *canaryQueue) Describe(to chan<- *prometheus.Desc) { to <- q.described }

// Collect implements prometheus.Collector.
func (q *canaryQueue) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(q.described, prometheus.GaugeValue, float64(q.read()))
}
