package canary

import (
	"bytes"
	"math/big"
	"strings"
	"time"
)

// maxExponent is how many digits of an exponent are understood. Numbers beyond it
// are compared as they are written.
const maxExponent = 32

// sameNumber tells whether two JSON numbers are equal, whatever their length.
func sameNumber(a, b []byte) bool {
	return bytes.Equal(a, b) || decimal(string(a)) == decimal(string(b))
}

// isInteger tells whether a JSON number is written as one.
func isInteger(number []byte) bool { return !bytes.ContainsAny(number, ".eE") }

// decimal writes a JSON number in the one form that all numbers of its value have:
// digits without zeros around them, and an exponent.
func decimal(number string) string {
	mantissa, exponent := number, ""
	if at := strings.IndexAny(number, "eE"); at >= 0 {
		mantissa, exponent = number[:at], strings.TrimPrefix(number[at+1:], "+")
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	shift, ok := exponentOf(exponent)
	if !ok {
		return number
	}
	short := strings.TrimRight(digits, "0")
	shift.Add(shift, big.NewInt(int64(len(digits)-len(short)-len(fraction))))
	if strings.HasPrefix(mantissa, "-") {
		short = "-" + short
	}
	return short + "e" + shift.String()
}

func exponentOf(text string) (*big.Int, bool) {
	sign, digits := "", text
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, digits = "-", rest
	}
	digits = strings.TrimLeft(digits, "0")
	if len(digits) > maxExponent {
		return nil, false
	}
	return new(big.Int).SetString(sign+"0"+digits, 10)
}

// layouts are the notations of time that trackers use.
var layouts = []string{time.RFC3339, "2006-01-02 15:04:05", "20060102T15:04:05", "2006-01-02"}

// timeOf reads a time. notation is equal for times that are written alike.
func timeOf(text []byte) (at time.Time, notation string, ok bool) {
	if len(text) < len("2006-01-02") || len(text) > 40 || text[0] < '0' || text[0] > '9' {
		return at, "", false
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, string(text)); err == nil {
			return at, notationOf(text), true
		}
	}
	return at, "", false
}

func notationOf(text []byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return '0'
		case r == '-':
			return '+'
		default:
			return r
		}
	}, string(text))
}

// times gives the distance of two times in one notation.
func times(a, b []byte) (apart time.Duration, ok bool) {
	first, notation, ok := timeOf(a)
	if !ok {
		return 0, false
	}
	second, other, ok := timeOf(b)
	return first.Sub(second).Abs(), ok && notation == other
}
