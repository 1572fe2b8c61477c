package view

import "slices"

// Chart is a row of bars for the template "chart".
type Chart struct {
	// Title names what is shown, and Now is its present value.
	Title, Now string
	// Max is the value that the height stands for.
	Max string
	// Width is the number of bars that fit.
	Width int
	// Layers lie one over the other.
	Layers [][]Bar
}

// Bar is a column: its place, and where it begins from above and its height, of 100.
type Bar struct {
	X           int
	Top, Height float64
}

// minBar is the height of the lowest bar, so that it can be seen.
const minBar = 3

// NewChart draws layers of values of the same length, the latest at the right. Values of 0 have no bar. floor is the least value
// that the height stands for.
func NewChart(title, now string, width int, floor float64, write func(float64) string, layers ...[]float64) Chart {
	highest := max(floor, slices.Max(slices.Concat(layers...)))
	c := Chart{Title: title, Now: now, Max: write(highest), Width: width}
	for _, values := range layers {
		var bars []Bar
		for i, value := range values {
			if value > 0 {
				height := max(minBar, value*100/highest)
				bars = append(bars, Bar{width - len(values) + i, 100 - height, height})
			}
		}
		c.Layers = append(c.Layers, bars)
	}
	return c
}
