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
	c := settled(t, openCache(t, f, patient(Options{Settings: Settings{LocalTTL: time.Hour}})))
	ctx, caller, request := context.Background(), withKey("k"), mapping.FlagTypesRequest{Product: "P"}
	allocs := testing.AllocsPerRun(1000, func() { _, _ = c.Do(ctx, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request}) })
	if allocs > 2 {
		t.Errorf("a local hit allocates %v times", allocs)
	}
}
