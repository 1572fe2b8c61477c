package admin

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// Metrics holds the program's Prometheus metrics in a registry of its own. Callers give each label values of a small set, never what a
// client sends. Its methods are safe for concurrent use.
type Metrics struct {
	all      *prometheus.Registry
	registry registry // adds to all

	requests, responseBytes, conflicts                 *prometheus.CounterVec
	calls, callBytes, retries, unknown, breakerChanges *prometheus.CounterVec
	cacheReads, cacheChanges, comparisons, dropped     *prometheus.CounterVec
	routed, refusedWrites, lookups                     *prometheus.CounterVec
	spans, spansDropped                                *prometheus.CounterVec
	requestSeconds, callSeconds, cacheFills, redis     *prometheus.HistogramVec
	breakers, redisUp, phases, rulesVersion, killed    *prometheus.GaugeVec
	journalEntries, journalLanes, journalLag           *prometheus.GaugeVec
	journalMissed, goingBack                           *prometheus.GaugeVec
	holding, reloadSuccess, reloadTime                 *prometheus.GaugeVec

	rules atomic.Pointer[switchover.Status] // as it last changed, nil before

	mu      sync.Mutex           // guards what follows
	reasons map[[2]string]Reason // that hold, by code and subject
	settled time.Time            // when the last reason ended, or the start
	minutes []totals             // at the ends of minutes, the latest last; never empty
}

// requestBounds are the bounds of the buckets of times, in seconds: from a response out of memory to the longest upload.
var requestBounds = [...]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// NewMetrics returns Metrics that include those of the Go runtime and of the process.
func NewMetrics() *Metrics {
	now, all := time.Now(), prometheus.NewRegistry()
	all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r := registry{prometheus.WrapRegistererWithPrefix("portico_", all)}
	m := &Metrics{
		all: all, registry: r, reasons: map[[2]string]Reason{}, settled: now, minutes: []totals{{at: now}},

		requests:       r.counter("requests_total", "Finished requests of clients.", "operation", "status_class", "reason"),
		requestSeconds: r.histogram("request_seconds", "Time from the arrival of a request to the last byte of the response.", "operation"),
		responseBytes:  r.counter("response_bytes_total", "Bytes of responses to clients.", "operation"),
		conflicts:      r.counter("ids_conflicts_total", "Attachment creates whose ids did not name the bug of the path."),

		calls:          r.counter("tracker_calls_total", "Calls to trackers.", "tracker", "operation", "class", "status_class", "outcome"),
		callSeconds:    r.histogram("tracker_call_seconds", "Time from sending a call to the end of the response.", "tracker", "class"),
		callBytes:      r.counter("tracker_bytes_total", "Bytes of bodies to and from trackers.", "tracker", "direction"),
		retries:        r.counter("tracker_retries_total", "Calls made again after a failure.", "tracker", "operation"),
		unknown:        r.counter("tracker_unknown_outcomes_total", "Writes that may or may not have been carried out.", "tracker", "operation"),
		breakers:       r.gauge("breaker_state", "The state that a breaker is in has the value 1.", "tracker", "breaker", "state"),
		breakerChanges: r.counter("breaker_changes_total", "Changes of a breaker's state.", "tracker", "breaker", "state"),

		cacheReads:   r.counter("cache_total", "Flag type reads by how the cache came by the response.", "outcome"),
		cacheFills:   r.histogram("cache_fill_seconds", "Calls of the tracker for the cache.", "result"),
		cacheChanges: r.counter("cache_changes_total", "Flag type changes, and whether Redis was informed of them.", "delivered"),
		redis:        r.histogram("redis_seconds", "Calls of Redis.", "operation", "result"),
		redisUp:      r.gauge("redis_up", "1 while Redis can be reached."),

		comparisons: r.counter("canary_comparisons_total", "Comparisons of two responses by outcome.", "operation", "outcome"),
		dropped:     r.counter("canary_dropped_total", "Comparisons that were not made.", "operation", "reason"),

		routed:        r.counter("switchover_calls_total", "Calls, or parts of calls, by the rule that chose the tracker.", "operation", "rule", "tracker"),
		refusedWrites: r.counter("switchover_refused_total", "Writes that no one tracker could carry out.", "operation"),
		lookups:       r.counter("switchover_lookups_total", "Questions for what a rule needs to know.", "what", "outcome"),
		phases:        r.gauge("switchover_phase", "The phase that a rule is in has the value 1.", "rule", "access", "phase"),
		rulesVersion:  r.gauge("switchover_version", "The version of the rules that count."),
		killed:        r.gauge("switchover_killed", "1 while the kill switch is thrown."),

		journalEntries: r.gauge("journal_entries", "Recorded writes that are not copied to the other tracker.", "status"),
		journalLanes:   r.gauge("journal_parked_lanes", "Objects whose writes are not copied before an operator decides."),
		journalLag:     r.gauge("journal_lag_seconds", "Age of the oldest recorded write that is not copied."),
		goingBack:      r.gauge("switchover_going_back", "Whether the writes of a rule can go back to the old tracker has the value 1.", "rule", "state"),
		journalMissed:  r.gauge("journal_missed", "Writes of this process that passed unrecorded since its start."),

		spans:        r.counter("trace_spans_total", "Spans that the collector of traces took."),
		spansDropped: r.counter("trace_spans_dropped_total", "Spans that never reached the collector of traces.", "reason"),

		holding:       r.gauge("condition", "1 while a reason of the alarm holds.", "code", "subject"),
		reloadSuccess: r.gauge("reload_success", "1 if the last reload of the configuration, or the start, was a success."),
		reloadTime:    r.gauge("reload_timestamp_seconds", "When the configuration was last reloaded with success, or the start."),
	}
	m.conflicts.WithLabelValues()        // shown from the start
	m.cacheChanges.WithLabelValues("no") // alerts see no increase in a series that begins with 1, so this one begins before
	m.Reloaded(nil)
	return m
}

// registry adds metrics whose names begin with portico_.
type registry struct{ prometheus.Registerer }

func (r registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (r registry) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (r registry) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return promauto.With(r).NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: requestBounds[:]}, labels)
}

// onScrape adds a gauge that read gives at each scrape.
func (r registry) onScrape(name, help string, read func() int) {
	promauto.With(r).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) })
}

// statusClass returns the first digit of a status, such as 2xx, or one of two words where there was no response.
func statusClass(status int) string {
	switch {
	case status == proxy.StatusClientGone:
		return "client_gone"
	case status < 100 || status > 599:
		return "none"
	}
	return "1xx2xx3xx4xx5xx"[status/100*3-3 : status/100*3]
}

var _ proxy.Observer = (*Metrics)(nil)

// Finished implements proxy.Observer.
func (m *Metrics) Finished(record proxy.Record) {
	operation := string(record.Operation)
	m.requests.WithLabelValues(operation, statusClass(record.Status), string(record.Reason)).Inc()
	var exemplar prometheus.Labels // nil without a trace that can be looked up
	if record.Sampled {
		exemplar = prometheus.Labels{"trace_id": record.TraceID}
	}
	m.requestSeconds.WithLabelValues(operation).(prometheus.ExemplarObserver).ObserveWithExemplar(record.Duration.Seconds(), exemplar)
	m.responseBytes.WithLabelValues(operation).Add(float64(record.Bytes))
	if record.Conflict {
		m.conflicts.WithLabelValues().Inc()
	}
}

// Calls is the transport.Observer that counts the calls to one tracker.
type Calls struct {
	Metrics *Metrics
	Tracker string
}

// Observe implements transport.Observer.
func (c Calls) Observe(call transport.Sample) {
	m, class := c.Metrics, call.Class.String()
	m.calls.WithLabelValues(c.Tracker, call.Operation, class, statusClass(call.Status), cmp.Or(string(call.Reason), "ok")).Inc()
	if call.Total > 0 { // what is refused at once says nothing about the tracker
		m.callSeconds.WithLabelValues(c.Tracker, class).Observe(call.Total.Seconds())
	}
	m.callBytes.WithLabelValues(c.Tracker, "in").Add(float64(max(call.BytesIn, 0)))
	m.callBytes.WithLabelValues(c.Tracker, "out").Add(float64(max(call.BytesOut, 0)))
	m.retries.WithLabelValues(c.Tracker, call.Operation).Add(float64(max(call.Tries-1, 0)))
	if call.Unknown {
		m.unknown.WithLabelValues(c.Tracker, call.Operation).Inc()
	}
}

// Breaker shows the state of a breaker: closed, half-open or open.
func (m *Metrics) Breaker(tracker, breaker string, state transport.State) {
	for _, each := range []transport.State{transport.Closed, transport.HalfOpen, transport.Open} {
		m.breakers.WithLabelValues(tracker, breaker, string(each)).Set(number(each == state))
		m.breakerChanges.WithLabelValues(tracker, breaker, string(each)) // before the first one
	}
}

// BreakerChanged counts a change of a breaker's state, and shows the state that it has now.
func (m *Metrics) BreakerChanged(tracker, breaker string, state transport.State) {
	m.Breaker(tracker, breaker, state)
	m.breakerChanges.WithLabelValues(tracker, breaker, string(state)).Inc()
}

// Limiter shows the load of a tracker. Each scrape calls read. It is called once per tracker and process.
func (m *Metrics) Limiter(tracker string, read func() transport.Load) {
	for _, operation := range append(mapping.Operations(), proxy.OpPassthrough) {
		m.unknown.WithLabelValues(tracker, string(operation)) // before the first one, for its alert
	}
	r := registry{prometheus.WrapRegistererWith(prometheus.Labels{"tracker": tracker}, m.registry)}
	r.onScrape("tracker_calls_in_use", "Calls under way.", func() int { return read().InUse })
	r.onScrape("tracker_call_slots", "Calls that may be under way at once.", func() int { return read().Slots })
	r.onScrape("tracker_calls_waiting", "Calls that wait for their turn.", func() int { return read().Waiting })
	promauto.With(r).NewCounterFunc(
		prometheus.CounterOpts{Name: "tracker_calls_shed_total", Help: "Calls refused because the tracker was busy."},
		func() float64 { return float64(read().Shed) })
}

// Connections shows the open connections of clients, and how many of them have a request. Each scrape calls read. It is called at
// most once.
func (m *Metrics) Connections(read func() (open, busy int)) {
	m.registry.onScrape("client_connections", "Open connections of clients.", func() int { open, _ := read(); return open })
	m.registry.onScrape("requests_in_flight", "Requests of clients under way, without cached reads of the fast path.", func() int {
		_, busy := read()
		return busy
	})
}

// Build shows the version of the program and of Go. It is called at most once.
func (m *Metrics) Build(version string) {
	m.registry.gauge("build_info", "1, with the version of the program and of Go.", "version", "go_version").WithLabelValues(version, runtime.Version()).Set(1)
}

// Reloaded records the outcome of a reload of the configuration.
func (m *Metrics) Reloaded(err error) {
	if err == nil {
		m.reloadTime.WithLabelValues().SetToCurrentTime()
	}
	m.reloadSuccess.WithLabelValues().Set(number(err == nil))
	m.set("reload", "", err != nil, time.Now(), fmt.Sprint(err))
}

// CanaryQueue shows the number of waiting comparisons. Each scrape calls read. It is called at most once.
func (m *Metrics) CanaryQueue(read func() int) {
	for _, operation := range mapping.Operations() {
		m.comparisons.WithLabelValues(string(operation), string(canary.OutcomeConfirmed)) // before the first one, for its alert
	}
	m.registry.onScrape("canary_queue", "Comparisons that wait for their turn.", read)
}

// CacheRead counts a read of flag types by its outcome, such as local, redis, stale, miss or bypass.
func (m *Metrics) CacheRead(outcome string) {
	m.cacheReads.WithLabelValues(outcome).Inc()
}

// CacheFill counts a call of the tracker for the cache.
func (m *Metrics) CacheFill(took time.Duration, err error) {
	m.cacheFills.WithLabelValues(result(err)).Observe(took.Seconds())
}

// Redis counts a call of Redis.
func (m *Metrics) Redis(operation string, took time.Duration, err error) {
	m.redis.WithLabelValues(operation, result(err)).Observe(took.Seconds())
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// RedisState records whether Redis can be reached.
func (m *Metrics) RedisState(available bool) {
	m.redisUp.WithLabelValues().Set(number(available))
	m.set("redis", "", !available, time.Now(), "")
}

// WithoutRedis ends what RedisState has recorded: nothing uses Redis any more.
func (m *Metrics) WithoutRedis() {
	m.set("redis", "", false, time.Now(), "")
	m.redisUp.Reset()
}

// CacheChange counts a flag type change by whether Redis has been informed of it.
func (m *Metrics) CacheChange(delivered bool) {
	m.cacheChanges.WithLabelValues(map[bool]string{true: "yes", false: "no"}[delivered]).Inc()
}

// Compared implements canary.Observer.
func (m *Metrics) Compared(operation mapping.Operation, outcome canary.Outcome) {
	m.comparisons.WithLabelValues(string(operation), string(outcome)).Inc()
}

// Dropped implements canary.Observer.
func (m *Metrics) Dropped(operation mapping.Operation, reason verdict.DropReason) {
	m.dropped.WithLabelValues(string(operation), string(reason)).Inc()
}

// Routed counts a call, or a part of one, that a rule sent to a tracker.
func (m *Metrics) Routed(operation mapping.Operation, rule, tracker string) {
	m.routed.WithLabelValues(string(operation), rule, tracker).Inc()
}

// RefusedWrite counts a write that no one tracker could carry out.
func (m *Metrics) RefusedWrite(operation mapping.Operation) {
	m.refusedWrites.WithLabelValues(string(operation)).Inc()
}

// Lookup counts a lookup for a rule's conditions: bug, attachment or flag_type, by outcome.
func (m *Metrics) Lookup(what, outcome string) { m.lookups.WithLabelValues(what, outcome).Inc() }

// Phases replaces the rules that are shown.
func (m *Metrics) Phases(status switchover.Status) {
	m.rules.Store(&status)
	m.phases.Reset()
	m.goingBack.Reset()
	for _, each := range status.Rules {
		m.mayGoBack(each.Rule.Name, each.GoingBack.State)
		m.phases.WithLabelValues(each.Rule.Name, "reads", string(each.Rule.Reads)).Set(1)
		m.phases.WithLabelValues(each.Rule.Name, "writes", string(each.Rule.Writes)).Set(1)
	}
	m.rulesVersion.WithLabelValues().Set(float64(status.Version))
	m.killed.WithLabelValues().Set(number(status.Killed != nil))
	kill := cmp.Or(status.Killed, &switchover.Kill{})
	m.set("kill-switch", "", status.Killed != nil, kill.At, kill.Actor+": "+kill.Reason)
}

// Journal replaces the figures of the journal.
func (m *Metrics) Journal(status journal.Status) {
	for name, entries := range map[string]int64{"pending": status.Pending, "unresolved": status.Unresolved, "parked": status.Parked} {
		m.journalEntries.WithLabelValues(name).Set(float64(entries))
	}
	m.journalLanes.WithLabelValues().Set(float64(status.ParkedLanes))
	m.journalLag.WithLabelValues().Set(status.Lag)
	m.journalMissed.WithLabelValues().Set(float64(status.Missed))
	rules := m.rules.Load()
	if rules == nil {
		return
	}
	for _, rule := range rules.Table.Rules {
		m.mayGoBack(rule.Name, rules.GoingBack(rule.Writes, rule, &status).State)
	}
}

// mayGoBack sets whether the writes of a rule can go back.
func (m *Metrics) mayGoBack(rule string, now journal.OutlookState) {
	for _, state := range journal.OutlookStates() {
		m.goingBack.WithLabelValues(rule, string(state)).Set(number(state == now))
	}
}

// number returns 1 for true and 0 for false.
func number(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// SpansSent counts spans that the collector took.
func (m *Metrics) SpansSent(n int) { m.spans.WithLabelValues().Add(float64(n)) }

// SpansDropped counts spans that could not be sent to the collector.
func (m *Metrics) SpansDropped(n int) { m.spansDropped.WithLabelValues("not-sent").Add(float64(n)) }
