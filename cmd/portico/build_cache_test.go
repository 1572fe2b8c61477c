package main

import (
	"io"
	"testing"
	"time"

	"portico/proxy/admin"
)

// TestTimesReachTheCache: what the configuration says of times holds for the cache's
// calls of the tracker and for its way to Redis.
func TestTimesReachTheCache(t *testing.T) {
	cfg := Default()
	tracker := cfg.Trackers["main"]
	tracker.URL, tracker.Timeout = "http://tracker.example/", 2*time.Minute
	cfg.Timeouts.Connect, cfg.Timeouts.Redis, cfg.Limits.QueueWait = 7*time.Second, 70*time.Millisecond, 3*time.Second
	cfg.Cache.Redis = RedisConfig{URL: "redis://redis.example/2"}
	base, err := trackerBase("main", tracker)
	if err != nil {
		t.Fatal(err)
	}
	b := builder{cfg: cfg, lookup: noVariables, logger: newLogger(io.Discard, cfg.Log)}
	b.house.metrics = admin.NewMetrics()
	options, err := b.cacheOptions("main", &trackerRooms{settings: tracker, base: base})
	if err != nil {
		t.Fatal(err)
	}
	if redis := options.Redis; options.FillTimeout != 2*time.Minute+3*time.Second || redis.DialTimeout != 7*time.Second || redis.Timeout != 70*time.Millisecond || redis.DB != 2 {
		t.Errorf("the cache waits %s for the tracker, %s for a connection to %s and %s for its answer", options.FillTimeout, redis.DialTimeout, redis, redis.Timeout)
	}
}

// TestCachedAddress: replicas that are given the same tracker share, others do not.
func TestCachedAddress(t *testing.T) {
	at := func(address, dialect string) string {
		t.Helper()
		settings := TrackerConfig{URL: address, Dialect: dialect}
		base, err := trackerBase("main", settings)
		if err != nil {
			t.Fatal(err)
		}
		return cachedAddress(settings, base)
	}
	usual := at("https://Tracker.example/bugs/", "auto")
	for _, same := range []string{"https://tracker.example/bugs", "https://tracker.example:443/bugs/", "HTTPS://u:p@tracker.example/bugs"} {
		if got := at(same, "auto"); got != usual {
			t.Errorf("%s is %q and not %q", same, got, usual)
		}
	}
	for _, other := range []string{"http://tracker.example/bugs", "https://tracker.example/Bugs", "https://tracker.example:8443/bugs", "https://tracker.example/"} {
		if at(other, "auto") == usual {
			t.Errorf("%s is the same as https://tracker.example/bugs", other)
		}
	}
	if at("https://tracker.example/bugs", "bmo") == usual {
		t.Error("another dialect makes no difference")
	}
}
