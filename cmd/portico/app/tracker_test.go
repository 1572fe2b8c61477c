package app

import (
	"log/slog"
	"net/url"
	"testing"
	"time"

	"portico/cmd/portico/config"
	"portico/upstream/bugzilla"
)

func noVariables(string) (string, bool) { return "", false }

// The timeouts of the configuration hold for the cache's calls of the tracker and for its connections to Redis.
func TestTimeoutsOfTheCache(t *testing.T) {
	cfg := config.Default()
	settings := config.Tracker{URL: "http://tracker.example/", Timeout: 2 * time.Minute}
	wait := 3 * time.Second
	cfg.Timeouts.Connect, cfg.Timeouts.Redis, cfg.Limits.QueueWait = 7*time.Second, 70*time.Millisecond, &wait
	cfg.Cache.Redis = config.Redis{URL: "redis://redis.example/2"}
	base, err := url.Parse(settings.URL)
	if err != nil {
		t.Fatal(err)
	}
	rt := Runtime{cfg: cfg, logger: slog.New(slog.DiscardHandler), resources: NewResources()}
	options, err := rt.cacheOptions(&tracker{settings: settings, base: base, client: &bugzilla.Client{}}, noVariables)
	if err != nil {
		t.Fatal(err)
	}
	if redis := options.Redis; options.FillTimeout != 2*time.Minute+3*time.Second || redis.DialTimeout != 7*time.Second || redis.Timeout != 70*time.Millisecond || redis.DB != 2 {
		t.Errorf("the cache waits %s for the tracker, %s for a connection to %s and %s for its reply", options.FillTimeout, redis.DialTimeout, redis, redis.Timeout)
	}
}
