package view

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// commonFunctions are those that all templates have.
func commonFunctions() FuncMap {
	return FuncMap{
		"or": func(a, b any) any {
			if truth(a) {
				return a
			}
			return b
		},
		"not":      func(a any) bool { return !truth(a) },
		"eq":       func(a, b any) bool { return text(a) == text(b) },
		"len":      func(list any) int { return reflect.ValueOf(list).Len() },
		"member":   func(of any, name string) any { return field(of, []string{name}) },
		"printf":   func(format string, value any) string { return fmt.Sprintf(format, value) },
		"lower":    strings.ToLower,
		"count":    Count,
		"at":       At,
		"share":    Share,
		"duration": Duration,
		"seconds":  Span,
		"machine":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"url":      URL,
	}
}

// URL returns a text that cannot run a script as a URL: paths of this listener and http and https URLs as they are, everything
// else as one segment of a path.
func URL(value any) string {
	text := text(value)
	local := strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !strings.Contains(text, `\`)
	if local || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return text
	}
	return strings.ReplaceAll(url.PathEscape(text), ":", "%3A")
}

// Count writes a number with commas.
func Count(n int64) string { return humanize.Comma(n) }

// Share writes a share from 0 to 1 as a percentage with three significant digits.
func Share(s float64) string { return strconv.FormatFloat(s*100, 'g', 3, 64) + " %" }

// Rate writes a number a second with three significant digits, or as a whole number.
func Rate(n float64) string {
	digits := strconv.FormatFloat(n, 'g', 3, 64)
	if n >= 999.5 {
		digits = Count(int64(n + .5))
	}
	return digits + " /s"
}

// Duration writes a length of time with three significant digits.
func Duration(d time.Duration) string { return Seconds(d.Seconds()) }

// Seconds writes a length of time in seconds with three significant digits.
func Seconds(s float64) string {
	unit := " s"
	switch {
	case s == 0:
		return "–"
	case s < .001:
		s, unit = s*1e6, " µs"
	case s < 1:
		s, unit = s*1e3, " ms"
	}
	return strconv.FormatFloat(s, 'g', 3, 64) + unit
}

// Span writes roughly how many seconds something takes.
func Span(s float64) string {
	switch {
	case s < 2*60:
		return fmt.Sprintf("%.0f s", max(1, s))
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%.0f h", s/3600)
	}
	return fmt.Sprintf("%.0f days", s/86400)
}

// At writes a time in UTC for people.
func At(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}
