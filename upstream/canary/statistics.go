package canary

import "math"

// confidence is that of every upper bound.
const confidence = 0.95

// upperBound is the largest rate of mismatches at which seeing at most so many of
// them among so many comparisons is not too unlikely: the exact one-sided bound of
// Clopper and Pearson at 95 %. Without comparisons it is 1.
func upperBound(mismatches, compared int64) float64 {
	switch {
	case compared <= 0 || mismatches >= compared:
		return 1
	case mismatches <= 0:
		return -math.Expm1(math.Log(1-confidence) / float64(compared))
	}
	low, high := float64(mismatches)/float64(compared), 1.0
	for range 200 {
		// The bound may be tiny, so that the middle is sought between logarithms too.
		middle := math.Sqrt(low * high)
		if middle <= low || middle >= high {
			break
		}
		if atMost(mismatches, compared, middle) > 1-confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// needed is how many more comparisons without a mismatch take the upper bound to
// the target, 0 when it is there. The target is more than 0.
func needed(mismatches, compared int64, target float64) int64 {
	enough := func(n int64) bool {
		return n > mismatches && atMost(max(mismatches, 0), n, target) <= 1-confidence
	}
	if target >= 1 || enough(compared) {
		return 0
	}
	least, most := compared, max(compared, 16)
	for !enough(most) {
		if most > math.MaxInt64/4 {
			return math.MaxInt64 - compared
		}
		least, most = most, most*2
	}
	for most-least > 1 {
		if middle := least + (most-least)/2; enough(middle) {
			most = middle
		} else {
			least = middle
		}
	}
	return most - compared
}

// atMost is the probability of at most k mismatches among n comparisons at a rate p.
func atMost(k, n int64, p float64) float64 {
	switch {
	case k >= n || p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	a, b := float64(n-k), float64(k+1)
	// The sum of binomial probabilities is an incomplete beta function, whose continued
	// fraction is quick on one side of the middle.
	if mean := a / (a + b); 1-p <= mean {
		return exactly(k, n, p) * a * p * fraction(a, b, 1-p, p)
	}
	return 1 - exactly(k+1, n, p)*b*(1-p)*fraction(b, a, p, 1-p)
}

// exactly is the binomial probability of k of n at a rate p, from the distances
// between factorials and Stirling's formula for them, since logarithms of factorials
// of large numbers leave no digits for their difference.
func exactly(k, n int64, p float64) float64 {
	x, total, rest := float64(k), float64(n), float64(n-k)
	switch {
	case k == 0:
		return math.Exp(total * math.Log1p(-p))
	case k == n:
		return math.Exp(total * math.Log(p))
	}
	log := stirlingError(total) - stirlingError(x) - stirlingError(rest) -
		deviance(x, total*p) - deviance(rest, total*(1-p))
	return math.Exp(log) * math.Sqrt(total/(2*math.Pi*x*rest))
}

// stirlingError is ln n! less Stirling's formula for it.
func stirlingError(n float64) float64 {
	if n < 16 {
		log, _ := math.Lgamma(n + 1)
		return log - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	square := n * n
	return (1.0/12 - (1.0/360-(1.0/1260-1.0/1680/square)/square)/square) / n
}

// deviance is x·ln(x/mean) + mean − x without losing digits where x is near mean.
func deviance(x, mean float64) float64 {
	difference := x - mean
	if math.Abs(difference) >= 0.1*(x+mean) {
		return x*math.Log(x/mean) - difference
	}
	ratio := difference / (x + mean)
	sum, term := difference*ratio, 2*x*ratio
	for j := 3.0; ; j += 2 {
		term *= ratio * ratio
		next := sum + term/j
		if next == sum {
			return sum
		}
		sum = next
	}
}

// fraction is the continued fraction of the incomplete beta function, evaluated
// from its front. It needs about √n steps near the mean.
func fraction(a, b, x, y float64) float64 {
	const tiny = 1e-300
	f, c, d := tiny, tiny, 0.0
	for step := range 1_000_000 {
		numerator, denominator := fractionStep(float64(step), a, b, x, y)
		d = nonZero(denominator+numerator*d, tiny)
		c = nonZero(denominator+numerator/c, tiny)
		d = 1 / d
		f *= c * d
		if math.Abs(c*d-1) < 1e-14 {
			break
		}
	}
	return f
}

func nonZero(x, tiny float64) float64 {
	if x == 0 {
		return tiny
	}
	return x
}

// fractionStep gives one partial numerator and denominator of the form that
// converges on both sides (Didonato and Morris, ACM TOMS 18, 1992, equation 9).
func fractionStep(m, a, b, x, y float64) (numerator, denominator float64) {
	denominator = m + (a+m)*(a*y-b*x+1+m*(2-x))/(a+2*m+1)
	if m == 0 {
		return 1, denominator
	}
	across := a + 2*m - 1
	numerator = (a + m - 1) / across * (a + b + m - 1) / across * m * (b - m) * x * x
	return numerator, denominator + m*(b-m)*x/across
}
