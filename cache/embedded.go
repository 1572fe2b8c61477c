package cache

import (
	"context"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"

	"portico/upstream"
)

const (
	// embeddedTick is how often time passes in the embedded server. Its own clock would visit every key on every command.
	embeddedTick = 100 * time.Millisecond
	// embeddedBytes bounds the entries in the embedded server, whose size is checked every embeddedCheck ticks.
	embeddedBytes = 128 << 20
	embeddedCheck = 40
)

// runEmbedded makes time pass in a Redis server inside this process, and bounds its size, until the context ends. The server
// listens nowhere: the client reaches it over pipes in memory.
func runEmbedded(ctx context.Context, server *miniredis.Miniredis) {
	last := time.Now()
	for n := 1; upstream.Pause(ctx, embeddedTick); n++ {
		now := time.Now()
		server.FastForward(now.Sub(last))
		last = now
		if n%embeddedCheck == 0 {
			shrink(server, embeddedBytes)
		}
	}
}

// shrink keeps at most bytes of entries, as a server with a memory limit does. It removes arbitrary ones: their names are
// digests.
func shrink(server *miniredis.Miniredis, bytes int) {
	db := server.DB(0)
	for _, key := range db.Keys() {
		if !strings.Contains(key, "}:"+valuePart) {
			continue
		}
		text, _ := db.Get(key) // one that has ended meanwhile is empty
		if bytes -= len(key) + len(text); bytes < 0 {
			db.Del(key)
		}
	}
}
