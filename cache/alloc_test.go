//go:build !race

package cache

import (
	"context"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// TestLocalHitHardlyAllocates: the answer, what is said of it, and nothing else.
func TestLocalHitHardlyAllocates(t *testing.T) {
	f := &fakeTracker{}
	c := settled(t, openCache(t, f, Options{Settings: Settings{LocalTTL: time.Hour}}))
	ctx, caller, request := context.Background(), withKey("k"), mapping.FlagTypesRequest{Product: "P"}
	allocs := testing.AllocsPerRun(1000, func() { _, _ = c.Do(ctx, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request}) })
	if allocs > 2 {
		t.Errorf("a local hit allocates %v times", allocs)
	}
}

func benchmark(b *testing.B, ttl time.Duration) {
	f := &fakeTracker{}
	c := settled(b, openCache(b, f, Options{Settings: Settings{LocalTTL: ttl}}))
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
