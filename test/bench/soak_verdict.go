package main

import (
	"math"
	"time"
)

// trend is a straight line through samples.
type trend struct {
	mean float64
	// growth is what the line gains over the whole time, and doubt twice its standard error: the true growth is within
	// growth ± doubt in 95 of 100 runs, if the samples have nothing to do with each other.
	growth, doubt float64
}

// trendOf fits a line by least squares.
func trendOf(at, figures []float64) trend {
	n := float64(len(at))
	var meanAt, mean float64
	for i := range at {
		meanAt, mean = meanAt+at[i]/n, mean+figures[i]/n
	}
	var squares, products float64
	for i := range at {
		squares += (at[i] - meanAt) * (at[i] - meanAt)
		products += (at[i] - meanAt) * (figures[i] - mean)
	}
	if squares == 0 || n < 3 {
		return trend{mean: mean, doubt: math.Inf(1)}
	}
	slope, rest := products/squares, 0.0
	for i := range at {
		off := figures[i] - mean - slope*(at[i]-meanAt)
		rest += off * off
	}
	span := at[len(at)-1] - at[0]
	return trend{mean: mean, growth: slope * span, doubt: 2 * math.Sqrt(rest/(n-2)/squares) * span}
}

// flat tells whether a figure does not surely grow by more than the noise that is allowed. A figure that jumps so much
// that nothing can be said is not flat.
func (t trend) flat(noise float64) bool {
	allowed := max(noise, t.mean/20)
	return t.growth-t.doubt <= allowed && t.growth <= 2*allowed && !math.IsInf(t.doubt, 1)
}

// settled leaves out the warming up: a sixth of the run, and at least half a minute.
func settled(samples []sample) []sample {
	if len(samples) == 0 {
		return nil
	}
	from := max(samples[len(samples)-1].at/6, 30*time.Second)
	for i := range samples {
		if samples[i].at >= from {
			return samples[i:]
		}
	}
	return nil
}

// verdict prints the samples, not more than some thirty of them, and what follows from all.
func (b *bench) verdict(samples []sample) {
	b.report.say("%10s %16s %16s %12s %12s", "after", "resident kB", "live heap kB", "goroutines", "open files")
	for i := 0; i < len(samples); i += max(1, len(samples)/30) {
		s := samples[i]
		b.report.say("%10s %16.0f %16.0f %12.0f %12.0f", s.at.Round(time.Second), s.figures[0], s.figures[1], s.figures[2], s.figures[3])
	}
	rest := settled(samples)
	b.report.say("%d samples without the warming up:", len(rest))
	for i, each := range soakFigures {
		var at, figures []float64
		for _, s := range rest {
			at, figures = append(at, s.at.Seconds()), append(figures, s.figures[i])
		}
		line := trendOf(at, figures)
		b.report.say("%-16s mean %10.1f %-2s, grows by %9.1f ± %.1f, %.2f %% of the mean", each.name, line.mean, each.unit,
			line.growth, line.doubt, 100*line.growth/line.mean)
		b.report.hold(each.name+" is flat", line.flat(each.noise))
	}
}
