package pages

import (
	"testing"
	"time"

	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

func TestNumbersInWords(t *testing.T) {
	for got, want := range map[string]string{
		span(time.Millisecond): "1 s", span(90 * time.Second): "90 s", span(10 * time.Minute): "10 min", span(26 * time.Hour): "26 h", span(72 * time.Hour): "3 days",
		plural(1, "rule", "rules"): "1 rule", plural(0, "rule", "rules"): "0 rules",
		quoteShell("it's"): `'it'\''s'`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEveryClassAndReasonIsExplained(t *testing.T) {
	for _, class := range compare.Classes() {
		if class.Means() == "" {
			t.Errorf("the class %s is not explained", class)
		}
	}
	for _, reason := range verdict.DropReasons() {
		if drops[reason] == "" {
			t.Errorf("the reason %s is not explained", reason)
		}
	}
}

func TestTimelineLosesNothing(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 30, 0, time.UTC)
	for _, minutes := range []int{1, 2, 29, 30, 59, 60, 61, 119, 120, 500, 3000, 40000} {
		step := time.Minute
		for time.Duration(minutes-1)*time.Minute/step >= 120 {
			step *= 2
		}
		var points []verdict.TimePoint
		first := now.Truncate(time.Minute).Add(-time.Duration(minutes-1) * time.Minute)
		for at := first; !at.After(now); at = at.Add(step) {
			points = append(points, verdict.TimePoint{At: at, Compared: 3, Confirmed: 1})
		}
		drawn := drawTimeline(points, now)
		var sum int64
		for _, p := range drawn.Points {
			sum += p.Compared
		}
		if sum != int64(3*len(points)) || drawn.Compared.Width < minBars || drawn.Compared.Width > maxBars || len(drawn.Compared.Layers[0]) == 0 {
			t.Errorf("%d minutes: %d of %d in %d bars %s", minutes, sum, 3*len(points), drawn.Compared.Width, drawn.Unit)
		}
		for _, b := range drawn.Compared.Layers[0] {
			if b.X < 0 || b.X >= drawn.Compared.Width || b.Height <= 0 || b.Height > 100 {
				t.Errorf("%d minutes: %+v of %d", minutes, b, drawn.Compared.Width)
			}
		}
	}
}
