package admin

import (
	"slices"
	"time"
)

// Traffic is what clients asked for of late.
type Traffic struct {
	// Latest is of the last one to two minutes.
	Latest Interval `json:"latest"`
	// Thin says that fewer than five requests a second make the figures of Latest uncertain.
	Thin bool `json:"thin"`
	// Minutes are those of the last hour, the present one last.
	Minutes []Interval `json:"minutes"`
}

// Interval has the figures of a time. Rates are shares from 0 to 1; what there was no request for is 0.
type Interval struct {
	From              time.Time `json:"from"`
	Seconds           float64   `json:"seconds"`
	Requests          float64   `json:"requests"`
	RequestsPerSecond float64   `json:"requests_per_second"`
	ErrorRate         float64   `json:"error_rate"`     // responses with a status of 500 or more
	CacheHitRate      float64   `json:"cache_hit_rate"` // of flag type reads
	P50Seconds        float64   `json:"p50_seconds"`
	P95Seconds        float64   `json:"p95_seconds"`
	P99Seconds        float64   `json:"p99_seconds"`
}

const (
	minutesKept = 60
	// thinRate is the number of requests in a second below which figures are thin.
	thinRate = 5
)

// totals are the numbers since the start at one moment.
type totals struct {
	at                            time.Time
	requests, errors, reads, hits float64
	// upTo has the numbers of requests that took at most each of requestBounds.
	upTo [len(requestBounds)]uint64
}

// totals adds up what is shown at /metrics, so that requests cost nothing more.
func (m *Metrics) totals(now time.Time) totals {
	t := totals{at: now}
	families, _ := m.all.Gather() // what could be read is there
	for _, family := range families {
		for _, each := range family.GetMetric() {
			n := each.GetCounter().GetValue()
			has := func(values ...string) bool {
				for _, label := range each.GetLabel() {
					if slices.Contains(values, label.GetValue()) {
						return true
					}
				}
				return false
			}
			switch family.GetName() {
			case "portico_requests_total":
				t.requests += n
				if has("5xx") {
					t.errors += n
				}
			case "portico_cache_total":
				t.reads += n
				if has("local", "redis", "stale") {
					t.hits += n
				}
			case "portico_request_seconds":
				for i, bucket := range each.GetHistogram().GetBucket() {
					t.upTo[i] += bucket.GetCumulativeCount()
				}
			}
		}
	}
	return t
}

// endMinute keeps the totals if a minute is over. It returns the figures of the last whole minute.
func (m *Metrics) endMinute(now time.Time) Interval {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.minutes[len(m.minutes)-1].at) >= time.Minute {
		m.minutes = append(m.minutes[max(0, len(m.minutes)+1-minutesKept):], m.totals(now))
	}
	last := len(m.minutes) - 1
	return interval(m.minutes[max(0, last-1)], m.minutes[last])
}

// Traffic returns the figures of the last hour.
func (m *Metrics) Traffic() Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := append(slices.Clip(m.minutes), m.totals(time.Now()))
	t := Traffic{Latest: interval(all[max(0, len(all)-3)], all[len(all)-1])}
	t.Thin = t.Latest.RequestsPerSecond < thinRate
	for i := range all[1:] {
		t.Minutes = append(t.Minutes, interval(all[i], all[i+1]))
	}
	return t
}

// interval returns the figures between two moments.
func interval(from, to totals) Interval {
	seconds, requests := to.at.Sub(from.at).Seconds(), to.requests-from.requests
	return Interval{
		From: from.at, Seconds: seconds, Requests: requests, RequestsPerSecond: share(requests, seconds),
		ErrorRate: share(to.errors-from.errors, requests), CacheHitRate: share(to.hits-from.hits, to.reads-from.reads),
		P50Seconds: quantile(from, to, .5), P95Seconds: quantile(from, to, .95), P99Seconds: quantile(from, to, .99),
	}
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

// quantile estimates the time that a share of the requests took at most, as Prometheus does: evenly within a bucket. Slower ones
// count as the last bound.
func quantile(from, to totals, rank float64) float64 {
	wanted := rank * (to.requests - from.requests)
	if wanted <= 0 {
		return 0
	}
	below, lower := 0.0, 0.0
	for i, bound := range requestBounds {
		upTo := float64(to.upTo[i] - from.upTo[i])
		if upTo >= wanted {
			return lower + (bound-lower)*(wanted-below)/(upTo-below)
		}
		below, lower = upTo, bound
	}
	return lower
}
