package pages

import (
	"fmt"
	"slices"
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

// drawTimeline makes bars of points that follow each other at even distances, up to now. Bars begin with the first point, so
// that none of them holds a part of one.
func drawTimeline(points []canary.TimePoint, now time.Time) timeline {
	if len(points) == 0 {
		return timeline{}
	}
	first := points[0].At
	t := timeline{Step: stepFor(now.Sub(first)), Unit: "per minute"}
	used := int(max(0, now.Sub(first))/t.Step) + 1
	t.Width = max(used, leastBars)
	t.To = first.Add(time.Duration(used-1) * t.Step)
	t.From = t.To.Add(-time.Duration(t.Width-1) * t.Step)
	sums := make([]canary.TimePoint, t.Width)
	for _, p := range points {
		if i := int(p.At.Sub(t.From) / t.Step); i >= 0 && i < t.Width {
			addPoint(&sums[i], p)
		}
	}
	t.addBars(sums)
	if t.Step > time.Minute {
		t.Unit = "per " + span(t.Step)
	}
	t.Text = t.sentence(sums)
	return t
}

// stepFor gives how much time a bar stands for: as a report's points, a minute or twice as much, again and again.
func stepFor(all time.Duration) time.Duration {
	step := time.Minute
	for all/step >= mostBars {
		step *= 2
	}
	return step
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
	for _, sum := range slices.Backward(sums) {
		if sum.Compared+sum.Dropped > 0 {
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
	return fmt.Sprintf("From %s to %s UTC: %s, %s confirmed; at most %s and %s %s.", t.Label(t.From), t.Label(t.To),
		plural(all.Compared, "comparison", "comparisons"), count(all.Confirmed), count(t.MostCompared), count(t.MostConfirmed), t.Unit)
}

// Label writes an end of the time line, with the day where it covers more than one.
func (t timeline) Label(at time.Time) string {
	if t.To.Sub(t.From) >= 20*time.Hour {
		return at.UTC().Format("2 Jan 15:04")
	}
	return at.UTC().Format("15:04")
}
