package view_test

import (
	"testing"
	"time"

	"portico/proxy/admin/view"
)

func TestNumbersInWords(t *testing.T) {
	for got, want := range map[string]string{
		view.Count(0): "0", view.Count(999): "999", view.Count(1000): "1,000", view.Count(-1234567): "-1,234,567",
		view.Share(0): "0 %", view.Share(1): "100 %", view.Share(0.001): "0.1 %", view.Share(0.0106394): "1.06 %",
		view.Share(0.000138): "0.0138 %", view.Share(0.00999999): "1 %", view.Share(0.5): "50 %",
		view.Duration(0): "–", view.Duration(8400 * time.Microsecond): "8.4 ms", view.Duration(999 * time.Nanosecond): "0.999 µs",
		view.Duration(2 * time.Minute): "120 s",
		view.Span(time.Millisecond):    "1 s", view.Span(90 * time.Second): "90 s", view.Span(10 * time.Minute): "10 min", view.Span(26 * time.Hour): "26 h", view.Span(72 * time.Hour): "3 days",
		view.At(time.Time{}): "never", view.At(time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))): "2030-01-02 02:04:05",
		view.URL("/canary?x=1"): "/canary?x=1", view.URL("https://tickets.example/1"): "https://tickets.example/1", view.URL("#a b"): "%23a%20b",
		view.URL("javascript:alert(1)"): "javascript%3Aalert%281%29", view.URL("//host/x"): "%2F%2Fhost%2Fx", view.URL(`/\host`): "%2F%5Chost",
		view.URL(5): "5",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
