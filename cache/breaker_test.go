package cache

import "testing"

// TestBreakerKnowsARedisThatLosesHalf of all commands, which never fail three times in a row.
func TestBreakerKnowsARedisThatLosesHalf(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string // of commands, over and over: x fails
		opens   int    // after so many, 0 never
	}{
		"every second one": {"x.", 15},
		"two of three":     {"xx.", 11},
		"a third":          {"x..", 0},
		"three in a row":   {"...xxx", 6},
	} {
		b := breaker{changed: func(bool, error) {}}
		opened := 0
		for i := range 200 {
			if c.pattern[i%len(c.pattern)] == 'x' {
				b.failed(errAnswer)
			} else {
				b.succeeded(false)
			}
			if !b.allows() {
				opened = i + 1
				break
			}
		}
		if opened != c.opens {
			t.Errorf("%s: it opens after %d, want %d", name, opened, c.opens)
		}
		b.succeeded(true)
		if b.failed(errAnswer); !b.allows() {
			t.Errorf("%s: one failure after it was well opens it", name)
		}
	}
}
