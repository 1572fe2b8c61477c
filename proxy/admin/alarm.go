package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"portico/proxy/admin/view"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/transport"
)

// Level says what clients notice of a condition.
type Level string

// The levels.
const (
	Green Level = "green" // nothing
	Amber Level = "amber" // they are served in a lesser way, or will be soon
	Red   Level = "red"   // some requests fail
)

// Reason is a condition that holds.
type Reason struct {
	Level Level `json:"level"`
	// Code is a word of a fixed set, Subject what it is about, such as a tracker, and Cause a text for people.
	Code    string    `json:"code"`
	Subject string    `json:"subject,omitempty"`
	Cause   string    `json:"cause,omitempty"`
	Since   time.Time `json:"since"`
	// Problem and Meaning are sentences: what is wrong, and what it means for clients.
	Problem string `json:"problem"`
	Meaning string `json:"meaning"`
}

// Alarm is the state of the service in one word, with the reasons, the worst first.
type Alarm struct {
	Level Level `json:"level"`
	// Since is when the level began, or when the last reason ended.
	Since   time.Time `json:"since"`
	Reasons []Reason  `json:"reasons"`
}

// conditions have the level, problem and meaning of each code. Problems take the subject.
var conditions = map[string]struct {
	level            Level
	problem, meaning string
}{
	"breaker-read": {Red, "Tracker %s fails, so Portico sends it no reads.",
		"Reads of this tracker fail with status 503, except flag types that the cache holds."},
	"breaker-write": {Red, "Tracker %s fails, so Portico sends it no writes.",
		"Creates and updates of this tracker fail with status 503. None of them reaches it."},
	"candidate": {Amber, "The candidate %s is away.", "It serves no client. Nothing is compared with it or copied to it."},
	"errors":    {Red, "Many requests fail.", "They get a status of 500 or more. Header, log and metrics have the reason of each."},
	"tracker":   {Red, "The tracker serves no request.", "Requests fail until the configuration is corrected."},
	"redis":     {Amber, "Redis is unreachable.", "Flag type reads go to the tracker. They are slower, and the tracker has more load."},
	"state": {Red, "The state database gives no current rules.",
		"Creates with an Idempotency-Key fail with status 503, and after six seconds all writes, unless the kill switch is on. " +
			"Reads follow the last known rules."},
	"journal":         {Amber, "Copies of writes are late.", "The other tracker lacks these writes. Clients notice it only where rules send them there."},
	"kill-switch":     {Amber, "The kill switch is thrown.", "All requests go to the old tracker, whatever the rules say."},
	"certificate":     {Amber, "The certificate of %s ends soon.", "From then on clients refuse the connection. Renew it and reload."},
	"certificate-end": {Red, "The certificate of %s has ended.", "Clients refuse the connection. Renew it and reload."},
	"disk":            {Amber, "The disk of %s is nearly full.", "Large requests, and changes of the state, fail once it is full."},
	"reload":          {Amber, "The last reload failed.", "The former configuration stays in force."},
}

// set records whether a condition holds for a subject, and since when unless that is known already.
func (m *Metrics) set(code, subject string, holds bool, since time.Time, cause string) {
	m.holding.WithLabelValues(code, subject).Set(number(holds))
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{code, subject}
	reason, held := m.reasons[key]
	if !holds {
		if held {
			m.settled = time.Now()
			delete(m.reasons, key)
		}
		return
	}
	if !held {
		c := conditions[code]
		reason = Reason{c.level, code, subject, "", since, strings.Replace(c.problem, "%s", subject, 1), c.meaning}
	}
	reason.Cause = cause
	m.reasons[key] = reason
}

// holds reports whether a condition without a subject holds.
func (m *Metrics) holds(code string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, held := m.reasons[[2]string{code, ""}]
	return held
}

// Alarm returns the present state of the service.
func (m *Metrics) Alarm() Alarm {
	m.mu.Lock()
	defer m.mu.Unlock()
	reasons := slices.SortedFunc(maps.Values(m.reasons), func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), a.Since.Compare(b.Since), cmp.Compare(a.Problem, b.Problem)) // red comes after amber
	})
	if len(reasons) == 0 {
		return Alarm{Green, m.settled, []Reason{}}
	}
	alarm := Alarm{reasons[0].Level, reasons[0].Since, reasons}
	if len(reasons) > 1 && reasons[1].Level == Red && reasons[0].Code == "errors" { // which names no cause
		reasons[0], reasons[1] = reasons[1], reasons[0]
	}
	return alarm
}

// Watched is what the alarm looks at: the state of trackers and of the switchover, and what follows.
type Watched struct {
	Status
	// Certificates are those of the listeners by name; nil for plain HTTP.
	Certificates map[string]*tls.Config
	// Folders are those that grow with requests or with the state, by name.
	Folders map[string]string
}

// soon is how long before its end a certificate is a reason.
const soon = 14 * 24 * time.Hour

// late is how long a recorded write may wait for its copy before that is a reason.
const late = 5 * time.Minute

// The failed requests of a minute, and their share, from which they are a reason. The share is that of the alert PorticoHighErrorRate.
const (
	manyErrors     = 5
	manyErrorsRate = .05
)

// Watch looks once a second, and keeps the totals of each minute, until ctx ends.
func (m *Metrics) Watch(ctx context.Context, look func() Watched) {
	for again := true; again; again = upstream.Pause(ctx, time.Second) {
		m.check(look(), time.Now())
	}
}

func (m *Metrics) check(w Watched, now time.Time) {
	minute := m.endMinute(now)
	failed := math.Round(minute.ErrorRate * minute.Requests)
	m.set("errors", "", failed >= manyErrors && minute.ErrorRate > manyErrorsRate, now, fmt.Sprintf("%.0f of %.0f requests within a minute.", failed, minute.Requests))
	for name, tracker := range w.Trackers {
		away := false
		for _, breaker := range tracker.Breakers {
			fails := breaker.State != transport.Closed
			away = away || fails && !tracker.Serves
			m.set("breaker-"+breaker.Breaker, name, fails && tracker.Serves, now, tracker.Address+": "+breaker.Cause)
		}
		m.set("candidate", name, away, now, tracker.Address+": "+tracker.Breakers[0].Cause)
	}
	problem, stale := w.Trackers[w.Primary].Problem, ""
	if w.Switchover != nil {
		stale = w.Switchover.Stale
	}
	m.set("tracker", "", problem != "", now, problem)
	m.set("state", "", stale != "", now, stale)
	recorded := cmp.Or(w.Journal, &journal.Status{})
	waits := recorded.Pending + recorded.Unresolved + recorded.Parked
	bound := late.Seconds()
	if m.holds("journal") { // until it is well below, so that the alarm does not come and go with each copy
		bound /= 2
	}
	m.set("journal", "", recorded.Lag > bound, now, fmt.Sprintf("%d not copied, %d of them parked.", waits, recorded.Parked))
	for name, secured := range w.Certificates {
		if secured == nil {
			continue
		}
		ends := secured.Certificates[0].Leaf.NotAfter
		m.set("certificate-end", name, ends.Before(now), ends, "")
		m.set("certificate", name, ends.After(now) && ends.Before(now.Add(soon)), ends.Add(-soon), "Its end is "+view.At(ends)+" UTC.")
	}
	for name, path := range w.Folders {
		free, size := diskSpace(path)
		m.set("disk", name, nearlyFull(free, size), now, path)
	}
}

// nearlyFull reports whether a disk has less free than a twentieth and than 1 GiB.
func nearlyFull(free, size uint64) bool { return free < min(size/20, 1<<30) }
