package main

import "testing"

// TestRatioBetween: the interval has the ratio in it, and is no wider than the turns differ.
func TestRatioBetween(t *testing.T) {
	var one, double [][]float64
	for turn := range 40 {
		for n := range 200 {
			wait := 1 + float64(n)/100 + float64(turn%4)/10
			if n == 0 {
				one, double = append(one, nil), append(double, nil)
			}
			one[turn], double[turn] = append(one[turn], wait), append(double[turn], 2*wait)
		}
	}
	for name, c := range map[string]struct {
		over [][]float64
		want float64
	}{"the same": {one, 1}, "twice as long": {double, 2}} {
		got := ratioBetween(c.over, one, .99)
		if got.low > c.want || got.high < c.want || got.high-got.low > c.want/5 {
			t.Errorf("%s: %v, want it close around %v", name, got, c.want)
		}
	}
	if got := quantile([][]float64{{1, 2}, {3}, {4}}, .5); got != 3 {
		t.Errorf("the middle is %v, want 3", got)
	}
}
