package pages

import (
	"fmt"
	"time"

	"portico/upstream/canary"
)

// timeline is what the bars over time show.
type timeline struct {
	// Step is how much time one bar stands for, and Unit the same in words.
	Step time.Duration
	Unit string
	// Width is the number of bars that have room.
	Width         int
	Compared      []bar
	Confirmed     []bar
	MostCompared  int64
	MostConfirmed int64
	From, To      time.Time
	// Text says in a sentence what is to be seen.
	Text string
	// Points are the numbers behind it, the latest first.
	Points []canary.TimePoint
}

// bar is a column: its place, and its height of 100.
type bar struct {
	X      int
	Height float64
}

const (
	leastBars = 30
	mostBars  = 60
)

// steps are the lengths of time that a bar may stand for.
var steps = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
	2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// drawTimeline makes bars of the points up to now.
func drawTimeline(points []canary.TimePoint, now time.Time) timeline {
	if len(points) == 0 {
		return timeline{}
	}
	t := timeline{Step: stepFor(now.Sub(points[0].At))}
	t.To = now.Truncate(t.Step)
	first := points[0].At.Truncate(t.Step)
	t.Width = min(max(int(t.To.Sub(first)/t.Step)+1, leastBars), mostBars)
	t.From = t.To.Add(-time.Duration(t.Width-1) * t.Step)
	sums := make([]canary.TimePoint, t.Width)
	for _, p := range points {
		if i := int(p.At.Truncate(t.Step).Sub(t.From) / t.Step); i >= 0 && i < t.Width {
			addPoint(&sums[i], p)
		}
	}
	t.addBars(sums)
	t.Unit = "per minute"
	if t.Step > time.Minute {
		t.Unit = "per " + span(t.Step)
	}
	t.Text = t.sentence(sums)
	return t
}

func stepFor(all time.Duration) time.Duration {
	for _, step := range steps {
		if all < step*(mostBars-1) {
			return step
		}
	}
	return steps[len(steps)-1]
}

func addPoint(sum *canary.TimePoint, p canary.TimePoint) {
	sum.Compared += p.Compared
	sum.Confirmed += p.Confirmed
	sum.Transient += p.Transient
	sum.Noisy += p.Noisy
	sum.Dropped += p.Dropped
}

func (t *timeline) addBars(sums []canary.TimePoint) {
	for i, sum := range sums {
		t.MostCompared = max(t.MostCompared, sum.Compared)
		t.MostConfirmed = max(t.MostConfirmed, sum.Confirmed)
		sums[i].At = t.From.Add(time.Duration(i) * t.Step)
	}
	for i, sum := range sums {
		if sum.Compared > 0 {
			t.Compared = append(t.Compared, bar{i, height(sum.Compared, t.MostCompared)})
		}
		if sum.Confirmed > 0 {
			t.Confirmed = append(t.Confirmed, bar{i, height(sum.Confirmed, t.MostConfirmed)})
		}
	}
	for i := len(sums) - 1; i >= 0; i-- {
		if sum := sums[i]; sum.Compared+sum.Dropped > 0 {
			t.Points = append(t.Points, sum)
		}
	}
}

// height is a bar's height of 100, never so small that it is not seen.
func height(n, most int64) float64 { return max(3, float64(n)*100/float64(most)) }

// Top is where a bar begins, from above.
func (b bar) Top() float64 { return 100 - b.Height }

func (t *timeline) sentence(sums []canary.TimePoint) string {
	var all canary.TimePoint
	for _, sum := range sums {
		addPoint(&all, sum)
	}
	return fmt.Sprintf("From %s to %s: %s, %s confirmed; at most %s and %s %s.", t.From.UTC().Format("15:04"), t.To.UTC().Format("15:04"),
		plural(all.Compared, "comparison", "comparisons"), count(all.Confirmed), count(t.MostCompared), count(t.MostConfirmed), t.Unit)
}
