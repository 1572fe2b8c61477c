package main

import "testing"

// TestTableCheck: goals bound Portico's medians, alone or by a peer, and skip what was not measured.
func TestTableCheck(t *testing.T) {
	var figures table
	for _, each := range []float64{1, 9, 4} {
		figures.add("CPU", porticoName, each)
		figures.add("CPU", porticoName+" + redis", each+4)
	}
	figures.add("CPU", nginxName, 4)
	for name, c := range map[string]struct {
		goal   goal
		missed int
	}{
		"alone":              {goal{row: "CPU", bound: 8}, 0},
		"one of two":         {goal{row: "CPU", bound: 4}, 1},
		"by a peer":          {goal{row: "CPU", by: nginxName, bound: 2}, 0},
		"by a peer, missed":  {goal{row: "CPU", by: nginxName, bound: .5}, 2},
		"minimum":            {goal{row: "CPU", by: nginxName, bound: 1, minimum: true}, 0},
		"minimum, missed":    {goal{row: "CPU", bound: 5, minimum: true}, 1},
		"peer not measured":  {goal{row: "CPU", by: goproxyName, bound: 0}, 0},
		"nothing is bounded": {goal{row: "rate", bound: 0}, 0},
	} {
		var r report
		figures.check(&r, c.goal)
		if r.missed != c.missed {
			t.Errorf("%s: %d missed, want %d", name, r.missed, c.missed)
		}
	}
}
