//go:build !race

package fastpath

import (
	"log/slog"
	"testing"
)

// TestCachedReadAllocatesLittle: each allocation of a cached read costs about as much as finding its response.
func TestCachedReadAllocatesLittle(t *testing.T) {
	if allocated := testing.AllocsPerRun(1000, cachedRead(t, slog.DiscardHandler)); allocated > 14 {
		t.Errorf("a cached read without a log line allocates %v times", allocated)
	}
}
