package cache

import (
	"context"
	"testing"
	"time"

	"portico/mapping"
)

func benchmark(b *testing.B, ttl time.Duration) {
	f := &fakeTracker{}
	c := settled(b, openCache(b, f, Options{LocalTTL: ttl}))
	ctx, caller := context.Background(), withKey("0123456789012345678901234567890123456789")
	request := mapping.FlagTypesRequest{Product: "Product", Component: "Component"}
	askFor(ctx, c, caller, request)
	b.ReportAllocs()
	for b.Loop() {
		if reply, err := c.FlagTypes(ctx, caller, request); err != nil || !reply.Cache.Hit {
			b.Fatal(reply.Cache, err)
		}
	}
}

func BenchmarkLocalHit(b *testing.B) { benchmark(b, time.Hour) }
func BenchmarkRedisHit(b *testing.B) { benchmark(b, 0) }

// TestLocalHitHardlyAllocates: the answer, what is said of it, and nothing else.
func TestLocalHitHardlyAllocates(t *testing.T) {
	f := &fakeTracker{}
	c := settled(t, openCache(t, f, Options{LocalTTL: time.Hour}))
	ctx, caller, request := context.Background(), withKey("k"), mapping.FlagTypesRequest{Product: "P"}
	allocs := testing.AllocsPerRun(1000, func() { _, _ = c.FlagTypes(ctx, caller, request) })
	if allocs > 2 {
		t.Errorf("a local hit allocates %v times", allocs)
	}
}
