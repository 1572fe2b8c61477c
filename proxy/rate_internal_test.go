package proxy

import (
	"fmt"
	"testing"
	"time"

	"portico/upstream"
)

func caller(address string, credentials upstream.Credentials) upstream.Caller {
	return upstream.Caller{Address: address, Credentials: credentials}
}

func TestRatesPerCaller(t *testing.T) {
	rates := newCallerRates(RateLimits{Anonymous: Rate{PerSecond: 1, Burst: 2}, Keyed: Rate{PerSecond: 10, Burst: 3}})
	now := time.Now()
	anonymous, known := caller("192.0.2.1", upstream.Credentials{}), caller("192.0.2.9", upstream.Credentials{APIKey: "k"})
	for i, c := range []struct {
		later  time.Duration
		caller upstream.Caller
		wait   time.Duration
	}{
		{0, anonymous, 0},
		{0, anonymous, 0},
		{0, anonymous, time.Second},
		{0, anonymous, time.Second}, // a refused call costs nothing
		{0, caller("192.0.2.2", upstream.Credentials{}), 0},
		{0, known, 0},
		{0, known, 0},
		{0, known, 0},
		{0, known, 100 * time.Millisecond},
		{0, caller("192.0.2.9", upstream.Credentials{Authorization: "Bearer k", APIKey: "k"}), 100 * time.Millisecond},
		{0, caller("198.51.100.1", upstream.Credentials{APIKey: "k"}), 100 * time.Millisecond},
		{100 * time.Millisecond, known, 0},
		{0, caller("192.0.2.9", upstream.Credentials{APIKey: "other"}), 0},
		{900 * time.Millisecond, anonymous, 0},
		{0, caller("2001:db8::1", upstream.Credentials{}), 0},
		{0, caller("2001:db8::2", upstream.Credentials{}), 0},
		{0, caller("2001:db8::3", upstream.Credentials{}), time.Second},
		{0, caller("2001:db8:0:1::3", upstream.Credentials{}), 0},
	} {
		now = now.Add(c.later)
		got, unproven := rates.take(now, c.caller)
		if got.Round(time.Millisecond) != c.wait {
			t.Errorf("call %d waits %v, want %v", i, got, c.wait)
		}
		if unproven {
			rates.accept(c.caller)
		}
	}
}

func TestCallersAreBounded(t *testing.T) {
	c, prints, now := newCallLimiters(Rate{PerSecond: 1, Burst: 1}), upstream.NewFingerprints(nil), time.Now()
	first, through := prints.Of("first"), 0
	for i := range 2 * maxCallers {
		c.take(now, prints.Of(fmt.Sprint(i)))
		if c.take(now, first) == 0 {
			through++
		}
	}
	c.CleanUp()
	if size := c.EstimatedSize(); size > maxCallers {
		t.Errorf("%d are remembered", size)
	}
	if through != 1 {
		t.Errorf("a caller that never stopped calling was forgotten %d times", through-1)
	}
}

// TestAcceptedTwice: two calls of one caller may be accepted at the same time.
func TestAcceptedTwice(t *testing.T) {
	rates := newCallerRates(RateLimits{Keyed: Rate{PerSecond: 1, Burst: 1}})
	known, now := caller("192.0.2.1", upstream.Credentials{APIKey: "k"}), time.Now()
	rates.take(now, known)
	for range 3 {
		rates.accept(known)
	}
	if wait, unproven := rates.take(now, known); wait == 0 || unproven {
		t.Errorf("waits %v, unproven %v", wait, unproven)
	}
}

func TestRatesAreOffByDefault(t *testing.T) {
	if newCallerRates(RateLimits{Anonymous: Rate{Burst: 5}}) != nil {
		t.Error("a burst alone turned the limit on")
	}
}
