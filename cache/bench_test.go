package cache

import (
	"context"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

func benchmark(b *testing.B, ttl time.Duration) {
	f := &fakeTracker{}
	c := settled(b, openCache(b, f, patient(Options{Settings: Settings{LocalTTL: ttl}})))
	ctx, caller := context.Background(), withKey("0123456789012345678901234567890123456789")
	request := mapping.FlagTypesRequest{Product: "Product", Component: "Component"}
	askFor(ctx, c, caller, request)
	b.ReportAllocs()
	for b.Loop() {
		if reply, err := c.Do(ctx, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request}); err != nil || !reply.Cache.Hit {
			b.Fatal(reply.Cache, err)
		}
	}
}

func BenchmarkLocalHit(b *testing.B) { benchmark(b, time.Hour) }
func BenchmarkRedisHit(b *testing.B) { benchmark(b, 0) }
