package config

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "512": "512", "512B": "512", "1KiB": "1KiB", "64 MiB": "64MiB", "2048KiB": "2MiB",
		"1GiB": "1GiB", "10MB": "10000000", "1kB": "1000", "1KB": "1000", "1GB": "1000000000",
		"": "", "MiB": "", "1.5MiB": "", "1mib": "", "1 2": "", "0x10": "", "9000000000GiB": "", "-9000000000GiB": "",
	} {
		var s Size
		err := s.UnmarshalText([]byte(text))
		if (err != nil) != (want == "") || err == nil && s.String() != want {
			t.Errorf("%q: got %s, %v, want %q", text, s, err, want)
		}
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", time.Minute: "1m", time.Hour: "1h",
		10 * time.Minute: "10m", 100 * time.Minute: "1h40m", time.Hour + time.Second: "1h0m1s", 10 * time.Second: "10s",
	} {
		if got := textOf(reflect.ValueOf(d), ""); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
		if again, err := time.ParseDuration(want); err != nil || again != d {
			t.Errorf("%q reads as %v, %v", want, again, err)
		}
	}
}

func TestQueueWaitFollowsTheTimeout(t *testing.T) {
	known := members(reflect.ValueOf(Limits{}))
	tag := known[slices.IndexFunc(known, func(k key) bool { return k.path == "queue_wait" })].tag
	for text, want := range map[string]time.Duration{"timeout": 7 * time.Second, "0s": 0, "2s": 2 * time.Second} {
		var limits Limits
		wait := reflect.ValueOf(&limits.QueueWait).Elem()
		if err := parse(wait, text, tag); err != nil || limits.WaitFor(7*time.Second) != want {
			t.Errorf("%s is %v, %v", text, limits.WaitFor(7*time.Second), err)
		}
		if again := textOf(wait, tag); again != text {
			t.Errorf("%s is written as %s", text, again)
		}
	}
	for _, text := range []string{"", "2", "-1s", "2h"} {
		var limits Limits
		if err := parse(reflect.ValueOf(&limits.QueueWait).Elem(), text, tag); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
