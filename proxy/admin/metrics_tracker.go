package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Call is one finished call to a tracker. Every text is one of a small fixed set.
type Call struct {
	// Operation is what was asked.
	Operation string
	// Class is the priority: shadow, read or write.
	Class string
	// Outcome is ok, or in one word why there was no usable answer.
	Outcome string
	// Status is the HTTP status, 0 where none came.
	Status int
	// Unknown says that a write may or may not have been carried out.
	Unknown bool
	// Tries is how often the call was made.
	Tries int
	// Took is the time to the end of the answer.
	Took time.Duration
	// BytesIn and BytesOut are those of bodies.
	BytesIn, BytesOut int64
}

// Load is how busy a tracker's limiter is.
type Load struct {
	// InUse calls hold one of the Slots, Waiting wait for one.
	InUse, Slots, Waiting int
	// Shed were refused since the start.
	Shed uint64
}

func (m *Metrics) addTracker() {
	m.calls = m.counter("tracker_calls_total", "Calls to trackers.", "tracker", "operation", "class", "status_class", "outcome")
	m.callSeconds = m.histogram("tracker_call_seconds", "Time to the end of a tracker's answer.", "tracker", "class")
	m.callBytes = m.counter("tracker_bytes_total", "Bytes of bodies to and from trackers.", "tracker", "direction")
	m.retries = m.counter("tracker_retries_total", "Calls made again after a failure.", "tracker", "operation")
	m.unknown = m.counter("tracker_unknown_outcomes_total", "Writes that may or may not have been carried out.", "tracker", "operation")
	m.breakers = m.gauge("breaker_state", "The state that a breaker is in has the value 1.", "tracker", "breaker", "state")
	m.changes = m.counter("breaker_changes_total", "Changes of a breaker's state.", "tracker", "breaker", "state")
}

// Call counts a call to a tracker.
func (m *Metrics) Call(tracker string, call Call) {
	tracker = m.words.bounded("tracker", tracker)
	operation := m.words.bounded("call", call.Operation)
	class := m.words.bounded("class", call.Class)
	m.calls.WithLabelValues(tracker, operation, class, statusClass(call.Status), m.words.bounded("outcome", call.Outcome)).Inc()
	m.callSeconds.WithLabelValues(tracker, class).Observe(call.Took.Seconds())
	m.callBytes.WithLabelValues(tracker, "in").Add(float64(max(call.BytesIn, 0)))
	m.callBytes.WithLabelValues(tracker, "out").Add(float64(max(call.BytesOut, 0)))
	if call.Tries > 1 {
		m.retries.WithLabelValues(tracker, operation).Add(float64(call.Tries - 1))
	}
	if call.Unknown {
		m.unknown.WithLabelValues(tracker, operation).Inc()
	}
}

// breakerStates are the states of a breaker, as transport names them.
var breakerStates = []string{"closed", "half-open", "open"}

// Breaker notes the state of a breaker: closed, half-open or open. It is called at the start too, to show that all is well.
func (m *Metrics) Breaker(tracker, breaker, state string) {
	tracker, breaker = m.words.bounded("tracker", tracker), m.words.bounded("breaker", breaker)
	for _, each := range breakerStates {
		value := 0.0
		if each == state {
			value = 1
		}
		m.breakers.WithLabelValues(tracker, breaker, each).Set(value)
	}
	m.changes.WithLabelValues(tracker, breaker, m.words.bounded("state", state)).Inc()
}

// Limiter shows how busy a tracker is; read is asked whenever the metrics are. It is called once per tracker and process.
func (m *Metrics) Limiter(tracker string, read func() Load) error {
	labels := prometheus.Labels{"tracker": tracker}
	return m.registry.Register(&limiter{read: read, described: map[string]*prometheus.Desc{
		"in_use":  describe("tracker_calls_in_use", "Calls under way.", labels),
		"slots":   describe("tracker_call_slots", "Calls that may be under way at once.", labels),
		"waiting": describe("tracker_calls_waiting", "Calls that wait for their turn.", labels),
		"shed":    describe("tracker_calls_shed_total", "Calls refused because the tracker was busy.", labels),
	}})
}

func describe(name, help string, labels prometheus.Labels) *prometheus.Desc {
	return prometheus.NewDesc("portico_"+name, help, nil, labels)
}

// limiter reads a limiter for each look at the metrics.
type limiter struct {
	read      func() Load
	described map[string]*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (l *limiter) Describe(to chan<- *prometheus.Desc) {
	for _, each := range l.described {
		to <- each
	}
}

// Collect implements prometheus.Collector.
func (l *limiter) Collect(to chan<- prometheus.Metric) {
	load := l.read()
	to <- prometheus.MustNewConstMetric(l.described["in_use"], prometheus.GaugeValue, float64(load.InUse))
	to <- prometheus.MustNewConstMetric(l.described["slots"], prometheus.GaugeValue, float64(load.Slots))
	to <- prometheus.MustNewConstMetric(l.described["waiting"], prometheus.GaugeValue, float64(load.Waiting))
	to <- prometheus.MustNewConstMetric(l.described["shed"], prometheus.CounterValue, float64(load.Shed))
}
