package config

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestTextsOfValues: sizes and durations are read in several forms, and written in the shortest.
func TestTextsOfValues(t *testing.T) {
	const size = `is:"size"`
	for _, tt := range []struct {
		into  any
		tag   reflect.StructTag
		texts map[string]string // as they are written, empty if they are refused
	}{
		{new(int64), size, map[string]string{
			"0": "0", "512": "512", "512B": "512", "1KiB": "1KiB", "64 MiB": "64MiB", "2048KiB": "2MiB",
			"1GiB": "1GiB", "10MB": "10000000", "1kB": "1000", "1KB": "1000", "1GB": "1000000000",
			"": "", "MiB": "", "1.5MiB": "", "1mib": "", "1 2": "", "0x10": "", "9000000000GiB": "", "-9000000000GiB": "",
		}},
		{new(time.Duration), "", map[string]string{
			"0": "0s", "1s": "1s", "90s": "1m30s", "60s": "1m", "60m": "1h", "10m": "10m", "100m": "1h40m", "3601s": "1h0m1s", "10s": "10s", "1": "",
		}},
	} {
		for text, want := range tt.texts {
			v := reflect.ValueOf(tt.into).Elem()
			err := parse(v, text, tt.tag)
			if (err != nil) != (want == "") || err == nil && textOf(v, tt.tag) != want {
				t.Errorf("%q: got %s, %v, want %q", text, textOf(v, tt.tag), err, want)
			}
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
