package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func (m *Metrics) addCache() {
	m.reads = m.counter("cache_total", "Flag type reads by how the cache came by the answer.", "outcome")
	m.fills = m.histogram("cache_fill_seconds", "Calls of the tracker for the cache.", "result")
	m.redis = m.histogram("redis_seconds", "Calls of Redis.", "operation", "result")
	m.redisUp = m.gauge("redis_up", "1 while Redis answers.").WithLabelValues()
	m.cacheChanges = m.counter("cache_changes_total", "Flag type changes, and whether Redis heard of them.", "delivered")
}

// CacheRead counts a read of flag types by its outcome, such as local, redis, stale, miss or bypass.
func (m *Metrics) CacheRead(outcome string) {
	m.readsKnown.of(outcome, m.findReads).Inc()
}

func (m *Metrics) findReads(outcome string) prometheus.Counter {
	return m.reads.WithLabelValues(m.words.bounded("read", outcome))
}

// CacheFill counts a call of the tracker for the cache.
func (m *Metrics) CacheFill(took time.Duration, err error) {
	m.fills.WithLabelValues(result(err)).Observe(took.Seconds())
}

// Redis counts a call of Redis.
func (m *Metrics) Redis(operation string, took time.Duration, err error) {
	m.redis.WithLabelValues(m.words.bounded("redis", operation), result(err)).Observe(took.Seconds())
}

// RedisState notes that Redis went away or came back.
func (m *Metrics) RedisState(available bool) {
	up := 0.0
	if available {
		up = 1
	}
	m.redisUp.Set(up)
}

// CacheChange counts a flag type change.
func (m *Metrics) CacheChange(delivered bool) {
	word := "no"
	if delivered {
		word = "yes"
	}
	m.cacheChanges.WithLabelValues(word).Inc()
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
