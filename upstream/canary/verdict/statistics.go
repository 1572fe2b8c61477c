package verdict

import (
	"math"
	"sort"
)

// confidence is that of every upper bound.
const confidence = 0.95

// upperBound is the largest mismatch rate that is consistent with the counts: the exact one-sided bound of Clopper and
// Pearson. Without comparisons it is 1.
func upperBound(mismatches, compared int64) float64 {
	if mismatches >= compared {
		return 1
	}
	low, high := float64(mismatches)/float64(compared), 1.0
	for middle := (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2 {
		if atMost(mismatches, compared, middle) > 1-confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// needed is how many more comparisons without a mismatch take the upper bound to the target, which is more than 0.
func needed(mismatches, compared int64, target float64) int64 {
	return int64(sort.Search(1<<40, func(more int) bool {
		all := compared + int64(more)
		return all > mismatches && atMost(mismatches, all, target) <= 1-confidence
	}))
}

// atMost is the binomial probability of at most k mismatches in n comparisons at the given rate. From the expected number
// on it returns 1: no caller needs the exact value there.
func atMost(k, n int64, rate float64) float64 {
	x, total := float64(k), float64(n)
	if x >= total*rate {
		return 1
	}
	logFactorial := func(of float64) float64 { value, _ := math.Lgamma(of + 1); return value }
	term := math.Exp(logFactorial(total) - logFactorial(x) - logFactorial(total-x) + x*math.Log(rate) + (total-x)*math.Log1p(-rate))
	sum := term
	for ; x > 0 && term > sum*1e-16; x-- { // the terms below the expected number shrink quickly
		term *= x / (total - x + 1) * (1 - rate) / rate
		sum += term
	}
	return sum
}
