package admin

import (
	"testing"
	"time"

	"portico/proxy"
)

func TestMinutesAreAnHour(t *testing.T) {
	m := NewMetrics()
	start := m.minutes[0].at
	for i := range 100 {
		m.Finished(proxy.Record{Operation: "flag_type.get", Status: 200})
		m.endMinute(start.Add(time.Duration(i+1)*time.Minute - time.Second)) // too early, except after the minute before
		m.endMinute(start.Add(time.Duration(i+1) * time.Minute))
	}
	traffic := m.Traffic()
	if len(traffic.Minutes) != minutesKept || traffic.Latest.Requests != 1 { // of the last whole minute and what came since
		t.Errorf("%d minutes are kept, the latest is %+v", len(traffic.Minutes), traffic.Latest)
	}
	for i, minute := range traffic.Minutes[:minutesKept-1] {
		if minute.Requests != 1 || minute.Seconds != 60 {
			t.Errorf("minute %d: %+v", i, minute)
		}
	}
}

// TestManyErrorsAreAReason for the minute after the one in which they were counted.
func TestManyErrorsAreAReason(t *testing.T) {
	for _, c := range []struct {
		failed, served int
		want           Level
	}{{5, 90, Red}, {5, 72, Red}, {4, 0, Green}, {5, 100, Green}} {
		m := NewMetrics()
		start := m.minutes[0].at
		for i := range c.failed + c.served {
			status := 503
			if i >= c.failed {
				status = 404
			}
			m.Finished(proxy.Record{Operation: "flag_type.get", Status: status})
		}
		m.check(Watched{}, start.Add(time.Second))
		before := m.Alarm()
		m.check(Watched{}, start.Add(time.Minute))
		alarm := m.Alarm()
		m.check(Watched{}, start.Add(2*time.Minute))
		after := m.Alarm()
		if before.Level != Green || alarm.Level != c.want || after.Level != Green {
			t.Errorf("%d of %d failed: %+v, then %+v, then %+v", c.failed, c.failed+c.served, before, alarm, after)
		}
		if c.want == Red && c.served == 90 && (alarm.Reasons[0].Code != "errors" || alarm.Reasons[0].Cause != "5 of 95 requests within a minute.") {
			t.Errorf("the reason is %+v", alarm.Reasons[0])
		}
	}
}

// TestACauseComesFirst: what names a cause comes before what only says that requests fail, although that is known for longer.
func TestACauseComesFirst(t *testing.T) {
	m, now := NewMetrics(), time.Now()
	m.set("errors", "", true, now, "")
	m.set("kill-switch", "", true, now.Add(time.Second), "")
	m.set("breaker-read", "main", true, now.Add(time.Minute), "")
	alarm, codes := m.Alarm(), ""
	for _, each := range alarm.Reasons {
		codes += each.Code + " "
	}
	if codes != "breaker-read errors kill-switch " || !alarm.Since.Equal(now) || alarm.Level != Red {
		t.Errorf("%s in %+v", codes, alarm)
	}
}

func TestNearlyFull(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		free, size uint64
		want       bool
	}{{gib / 2, 1000 * gib, true}, {2 * gib, 1000 * gib, false}, {gib / 100, gib, true}, {gib / 10, gib, false}, {0, 0, false}} {
		if nearlyFull(c.free, c.size) != c.want {
			t.Errorf("%d of %d: %v", c.free, c.size, !c.want)
		}
	}
	if free, size := diskSpace(t.TempDir()); size == 0 || free > size {
		t.Errorf("%d of %d are free", free, size)
	}
}
