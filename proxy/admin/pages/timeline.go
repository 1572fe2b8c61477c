package pages

import (
	"fmt"
	"slices"
	"time"

	"portico/proxy/admin/view"
	"portico/upstream/canary/verdict"
)

// timeline is a bar chart of comparisons over time, with the latencies of both trackers.
type timeline struct {
	// Unit says how much time one bar stands for.
	Unit                string
	Compared, Confirmed view.Chart
	// Latencies are those of the reference and of the candidate, at one scale.
	Latencies []view.Chart
	From, To  time.Time
	// Text describes the charts in a sentence.
	Text string
	// Points are the numbers of the bars, the latest first.
	Points []verdict.TimePoint
}

// minBars is the number of bars that fit at least.
const minBars = 30

// drawTimeline makes a bar of each point of a report.
func drawTimeline(report verdict.Report) timeline {
	points := report.Timeline
	if len(points) == 0 {
		return timeline{}
	}
	step, width := time.Minute, max(len(points), minBars)
	if len(points) > 1 {
		step = points[1].At.Sub(points[0].At)
	}
	t := timeline{Unit: "per minute", To: points[len(points)-1].At}
	if step > time.Minute {
		t.Unit = "per " + view.Span(step.Seconds())
	}
	t.From = t.To.Add(-time.Duration(width-1) * step)
	var all verdict.TimePoint
	var compared, confirmed []float64
	for _, p := range points {
		compared, confirmed = append(compared, float64(p.Compared)), append(confirmed, float64(p.Confirmed))
		all.Compared += p.Compared
		all.Confirmed += p.Confirmed
		if p.Compared+p.Dropped > 0 {
			t.Points = append(t.Points, p)
		}
	}
	slices.Reverse(t.Points)
	whole := func(n float64) string { return view.Count(int64(n)) }
	t.Compared = view.NewChart("Compared", t.Unit, width, 1, whole, compared)
	t.Confirmed = view.NewChart("Confirmed differences", t.Unit, width, 1, whole, confirmed)
	t.Latencies = drawLatencies(report, width)
	t.Text = fmt.Sprintf("From %s to %s UTC: %s, %s confirmed; at most %s and %s %s.", t.Label(t.From), t.Label(t.To),
		plural(all.Compared, "comparison", "comparisons"), view.Count(all.Confirmed), t.Compared.Max, t.Confirmed.Max, t.Unit)
	return t
}

// drawLatencies makes a chart for each tracker, whose bars are the 95th percentile with the median before it.
func drawLatencies(report verdict.Report, width int) []view.Chart {
	scale := time.Millisecond
	for _, p := range report.Timeline {
		scale = max(scale, p.Answered.P95, p.Other.P95)
	}
	draw := func(name string, all verdict.Quantiles, of func(verdict.TimePoint) verdict.Quantiles) view.Chart {
		var p95, p50 []float64
		for _, p := range report.Timeline {
			p95, p50 = append(p95, of(p).P95.Seconds()), append(p50, of(p).P50.Seconds())
		}
		now := view.Duration(all.P95) + " / " + view.Duration(all.P50)
		return view.NewChart(name+": p95, with p50 in front", now, width, scale.Seconds(), view.Seconds, p95, p50)
	}
	return []view.Chart{
		draw(report.Pair.Serving, report.Overall.Answered, func(p verdict.TimePoint) verdict.Quantiles { return p.Answered }),
		draw(report.Pair.Compared, report.Overall.Other, func(p verdict.TimePoint) verdict.Quantiles { return p.Other }),
	}
}

// Label writes an end of the timeline, with the day where it covers more than one.
func (t timeline) Label(at time.Time) string {
	if t.To.Sub(t.From) >= 20*time.Hour {
		return at.UTC().Format("2 Jan 15:04")
	}
	return at.UTC().Format("15:04")
}
