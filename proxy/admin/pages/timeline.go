package pages

import (
	"fmt"
	"slices"
	"time"

	"portico/proxy/admin/view"
	"portico/upstream/canary/verdict"
)

// timeline is a bar chart of comparisons over time.
type timeline struct {
	// Unit says how much time one bar stands for.
	Unit                string
	Compared, Confirmed view.Chart
	From, To            time.Time
	// Text describes the charts in a sentence.
	Text string
	// Points are the numbers of the bars, the latest first.
	Points []verdict.TimePoint
}

const (
	minBars = 30
	maxBars = 60
)

// drawTimeline makes bars of points at even distances, up to now. Bars begin with the first point and have the length of
// points, a minute, or twice as much again and again, so that none of them holds a part of a point.
func drawTimeline(points []verdict.TimePoint, now time.Time) timeline {
	if len(points) == 0 {
		return timeline{}
	}
	first, step := points[0].At, time.Minute
	length := max(0, now.Sub(first))
	for length/step >= maxBars {
		step *= 2
	}
	used := length/step + 1
	t, width := timeline{Unit: "per minute", To: first.Add((used - 1) * step)}, max(int(used), minBars)
	if step > time.Minute {
		t.Unit = "per " + span(step)
	}
	t.From = t.To.Add(-time.Duration(width-1) * step)
	sums, all := make([]verdict.TimePoint, width), verdict.TimePoint{}
	for _, p := range points {
		if i := int(p.At.Sub(t.From) / step); i >= 0 && i < width {
			addPoint(&sums[i], p)
			addPoint(&all, p)
		}
	}
	var compared, confirmed []float64
	for i, sum := range sums {
		sum.At = t.From.Add(time.Duration(i) * step)
		compared, confirmed = append(compared, float64(sum.Compared)), append(confirmed, float64(sum.Confirmed))
		if sum.Compared+sum.Dropped > 0 {
			t.Points = append(t.Points, sum)
		}
	}
	whole := func(n float64) string { return view.Count(int64(n)) }
	t.Compared = view.NewChart("Compared", t.Unit, width, 1, whole, compared)
	t.Confirmed = view.NewChart("Confirmed differences", t.Unit, width, 1, whole, confirmed)
	slices.Reverse(t.Points)
	t.Text = fmt.Sprintf("From %s to %s UTC: %s, %s confirmed; at most %s and %s %s.", t.Label(t.From), t.Label(t.To),
		plural(all.Compared, "comparison", "comparisons"), view.Count(all.Confirmed), t.Compared.Max, t.Confirmed.Max, t.Unit)
	return t
}

func addPoint(sum *verdict.TimePoint, p verdict.TimePoint) {
	sum.Compared += p.Compared
	sum.Confirmed += p.Confirmed
	sum.Transient += p.Transient
	sum.Noisy += p.Noisy
	sum.Dropped += p.Dropped
}

// Label writes an end of the timeline, with the day where it covers more than one.
func (t timeline) Label(at time.Time) string {
	if t.To.Sub(t.From) >= 20*time.Hour {
		return at.UTC().Format("2 Jan 15:04")
	}
	return at.UTC().Format("15:04")
}
