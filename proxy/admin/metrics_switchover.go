package admin

import "github.com/prometheus/client_golang/prometheus"

func (m *Metrics) addSwitchover() {
	m.routed = m.counter("switchover_calls_total", "Calls, or parts of calls, by the rule that chose the tracker.", "operation", "rule", "tracker")
	m.refusedWrites = m.counter("switchover_refused_total", "Writes that no one tracker could carry out.", "operation")
	m.lookups = m.counter("switchover_lookups_total", "Questions for what a rule needs to know.", "what", "outcome")
	m.phases = m.gauge("switchover_phase", "The phase that a rule is in has the value 1.", "rule", "access", "phase")
	m.rulesVersion = m.gauge("switchover_version", "The version of the rules that count.")
	m.killed = m.gauge("switchover_killed", "1 while the kill switch is thrown.")
}

// Routed counts a call, or a part of one, that a rule sent to a tracker.
func (m *Metrics) Routed(operation, rule, tracker string) {
	m.routed.WithLabelValues(m.words.bounded("operation", operation), m.words.bounded("rule", rule), m.words.bounded("tracker", tracker)).Inc()
}

// RefusedWrite counts a write that no one tracker could carry out.
func (m *Metrics) RefusedWrite(operation string) {
	m.refusedWrites.WithLabelValues(m.words.bounded("operation", operation)).Inc()
}

// Lookup counts a question for what a rule needs to know: bug, attachment or flag_type, by outcome.
func (m *Metrics) Lookup(what, outcome string) {
	m.lookups.WithLabelValues(m.words.bounded("lookup", what), m.words.bounded("found", outcome)).Inc()
}

// RulePhase is the phase of the reads and writes that a rule decides on.
type RulePhase struct{ Rule, Reads, Writes string }

// Phases notes the rules that count from now on.
func (m *Metrics) Phases(version int64, killed bool, rules []RulePhase) {
	m.phases.Reset()
	for _, each := range rules {
		rule := m.words.bounded("rule", each.Rule)
		m.phases.WithLabelValues(rule, "reads", m.words.bounded("phase", each.Reads)).Set(1)
		m.phases.WithLabelValues(rule, "writes", m.words.bounded("phase", each.Writes)).Set(1)
	}
	m.rulesVersion.WithLabelValues().Set(float64(version))
	thrown := 0.0
	if killed {
		thrown = 1
	}
	m.killed.WithLabelValues().Set(thrown)
}

// switchoverMetrics are those that a switchover fills.
type switchoverMetrics struct {
	routed        *prometheus.CounterVec
	refusedWrites *prometheus.CounterVec
	lookups       *prometheus.CounterVec
	phases        *prometheus.GaugeVec
	rulesVersion  *prometheus.GaugeVec
	killed        *prometheus.GaugeVec
}
