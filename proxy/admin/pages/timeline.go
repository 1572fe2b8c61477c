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
	Unit string
	// Width is the number of bars that fit.
	Width                     int
	Compared, Confirmed       []bar
	MaxCompared, MaxConfirmed int64
	From, To                  time.Time
	// Text describes the chart in a sentence.
	Text string
	// Points are the numbers of the bars, the latest first.
	Points []verdict.TimePoint
}

// bar is a column: its place, and where it begins from above and its height, of 100.
type bar struct {
	X           int
	Top, Height float64
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
	t := timeline{Unit: "per minute", Width: max(int(used), minBars), To: first.Add((used - 1) * step)}
	if step > time.Minute {
		t.Unit = "per " + span(step)
	}
	t.From = t.To.Add(-time.Duration(t.Width-1) * step)
	sums, all := make([]verdict.TimePoint, t.Width), verdict.TimePoint{}
	for _, p := range points {
		if i := int(p.At.Sub(t.From) / step); i >= 0 && i < t.Width {
			addPoint(&sums[i], p)
			addPoint(&all, p)
		}
	}
	for _, sum := range sums {
		t.MaxCompared, t.MaxConfirmed = max(t.MaxCompared, sum.Compared), max(t.MaxConfirmed, sum.Confirmed)
	}
	for i, sum := range sums {
		sum.At = t.From.Add(time.Duration(i) * step)
		t.Compared = appendBar(t.Compared, i, sum.Compared, t.MaxCompared)
		t.Confirmed = appendBar(t.Confirmed, i, sum.Confirmed, t.MaxConfirmed)
		if sum.Compared+sum.Dropped > 0 {
			t.Points = append(t.Points, sum)
		}
	}
	slices.Reverse(t.Points)
	t.Text = fmt.Sprintf("From %s to %s UTC: %s, %s confirmed; at most %s and %s %s.", t.Label(t.From), t.Label(t.To),
		plural(all.Compared, "comparison", "comparisons"), view.Count(all.Confirmed), view.Count(t.MaxCompared), view.Count(t.MaxConfirmed), t.Unit)
	return t
}

func addPoint(sum *verdict.TimePoint, p verdict.TimePoint) {
	sum.Compared += p.Compared
	sum.Confirmed += p.Confirmed
	sum.Transient += p.Transient
	sum.Noisy += p.Noisy
	sum.Dropped += p.Dropped
}

// appendBar adds a bar unless it is empty. A bar is never so low that it cannot be seen.
func appendBar(bars []bar, x int, n, highest int64) []bar {
	if n == 0 {
		return bars
	}
	height := max(3, float64(n)*100/float64(highest))
	return append(bars, bar{x, 100 - height, height})
}

// Label writes an end of the timeline, with the day where it covers more than one.
func (t timeline) Label(at time.Time) string {
	if t.To.Sub(t.From) >= 20*time.Hour {
		return at.UTC().Format("2 Jan 15:04")
	}
	return at.UTC().Format("15:04")
}
