package admin

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portico/mapping"
	"portico/proxy"
)

// Metrics counts what the rooms tell it. Every label has a bounded set of values, whatever clients send. Its methods
// are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	words    words

	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	bytes     *prometheus.CounterVec
	conflicts prometheus.Counter
	finished  series[finishedKind, finishedFigures]

	calls       *prometheus.CounterVec
	callSeconds *prometheus.HistogramVec
	callBytes   *prometheus.CounterVec
	retries     *prometheus.CounterVec
	unknown     *prometheus.CounterVec
	breakers    *prometheus.GaugeVec
	changes     *prometheus.CounterVec

	reads        *prometheus.CounterVec
	readsKnown   series[string, prometheus.Counter]
	fills        *prometheus.HistogramVec
	redis        *prometheus.HistogramVec
	redisUp      prometheus.Gauge
	cacheChanges *prometheus.CounterVec

	comparisons *prometheus.CounterVec
	dropped     *prometheus.CounterVec
	switchoverMetrics
	traceMetrics
}

// buckets reach from an answer out of memory to the longest upload.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// NewMetrics makes Metrics with a registry of its own, the process's figures in it.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.requests = m.counter("requests_total", "Finished requests of clients.", "operation", "status_class", "reason")
	m.seconds = m.histogram("request_seconds", "Time from the arrival of a request to the last byte of the answer.", "operation")
	m.bytes = m.counter("response_bytes_total", "Bytes of answers to clients.", "operation")
	m.conflicts = m.counter("ids_conflicts_total", "Attachment creates whose ids did not name the bug of the path.").WithLabelValues()
	m.addTracker()
	m.addCache()
	m.addCanary()
	m.addSwitchover()
	m.addTraces()
	return m
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "portico", Name: name, Help: help}, labels)
	m.registry.MustRegister(vector)
	return vector
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	vector := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "portico", Name: name, Help: help}, labels)
	m.registry.MustRegister(vector)
	return vector
}

func (m *Metrics) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	vector := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "portico", Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(vector)
	return vector
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

var _ proxy.Observer = (*Metrics)(nil)

// Finished implements proxy.Observer.
func (m *Metrics) Finished(record proxy.Record) {
	figures := m.finished.of(finishedKind{record.Operation, record.Status, record.Reason}, m.findFinished)
	figures.requests.Inc()
	figures.seconds.Observe(record.Duration.Seconds())
	figures.bytes.Add(float64(record.Bytes))
	if record.Conflict {
		m.conflicts.Inc()
	}
}

// finishedKind is what tells finished requests apart, and finishedFigures is what they are counted in.
type (
	finishedKind struct {
		operation mapping.Operation
		status    int
		reason    mapping.Reason
	}
	finishedFigures struct {
		requests, bytes prometheus.Counter
		seconds         prometheus.Observer
	}
)

func (m *Metrics) findFinished(kind finishedKind) finishedFigures {
	operation := m.words.bounded("operation", string(kind.operation))
	reason := m.words.bounded("reason", string(kind.reason))
	return finishedFigures{
		requests: m.requests.WithLabelValues(operation, statusClass(kind.status), reason),
		seconds:  m.seconds.WithLabelValues(operation),
		bytes:    m.bytes.WithLabelValues(operation),
	}
}

// statusClass is the first digit of a status, except for the two that tell of no answer.
func statusClass(status int) string {
	if status == proxy.StatusClientGone {
		return "client_gone"
	}
	if status < 100 || status > 599 {
		return "none"
	}
	return strconv.Itoa(status/100) + "xx"
}

// words remembers the values of each label and takes only so many, so that no mistake elsewhere can fill the memory.
type words struct {
	mu    sync.Mutex
	known map[string]map[string]bool
}

// mostWords is several times what the rooms have to say.
const mostWords = 100

func (w *words) bounded(label, word string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[string]map[string]bool{}
	}
	seen := w.known[label]
	if seen == nil {
		seen = map[string]bool{}
		w.known[label] = seen
	}
	if !seen[word] && (len(seen) == mostWords || len(word) > 64) {
		return "other"
	}
	seen[word] = true
	return word
}
