package view

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// words are the functions that all templates have.
func words() Words {
	return Words{
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
		"seconds":  func(n float64) string { return Span(time.Duration(n * float64(time.Second))) },
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
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Share writes a share from 0 to 1 as a percentage with three significant digits.
func Share(s float64) string { return strconv.FormatFloat(s*100, 'g', 3, 64) + " %" }

// Duration writes a length of time with three significant digits.
func Duration(d time.Duration) string {
	value, unit := d.Seconds(), "s"
	switch {
	case d == 0:
		return "–"
	case d < time.Millisecond:
		value, unit = float64(d)/1e3, "µs"
	case d < time.Second:
		value, unit = float64(d)/1e6, "ms"
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + " " + unit
}

// Seconds writes a length of time in seconds with three significant digits.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// Span writes roughly how long something takes.
func Span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", max(1, d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// At writes a time in UTC for people.
func At(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}
