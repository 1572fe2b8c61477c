package cache

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embedded is a Redis server inside this process. It listens nowhere: clients
// reach it over pipes in memory, so nobody else on the machine can.
type embedded struct {
	server *miniredis.Miniredis
	stop   context.CancelFunc
	done   sync.WaitGroup
	bytes  int
}

// embeddedTick is how often time passes in the embedded server. Its own clock
// mode would visit every key on every command.
const embeddedTick = 100 * time.Millisecond

func startEmbedded(bytes int) *embedded {
	ctx, stop := context.WithCancel(context.Background())
	e := &embedded{server: miniredis.NewMiniRedis(), stop: stop, bytes: bytes}
	e.done.Go(func() { e.drive(ctx) })
	return e
}

// dial has the shape that go-redis asks for.
func (e *embedded) dial(context.Context, string, string) (net.Conn, error) { return e.server.Dial() }

func (e *embedded) close() {
	e.stop()
	e.done.Wait()
	e.server.Close()
}

// drive lets time pass, and makes room as a real server with a memory limit does.
func (e *embedded) drive(ctx context.Context) {
	tick := time.NewTicker(embeddedTick)
	defer tick.Stop()
	last := time.Now()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			e.server.FastForward(now.Sub(last))
			last = now
		}
		if n%40 == 0 {
			e.shrink()
		}
	}
}

// shrink removes the answers that are nearest to their end until there is a fifth
// of the room free again.
func (e *embedded) shrink() {
	db := e.server.DB(0)
	type held struct {
		key  string
		size int
		left time.Duration
	}
	var all []held
	total := 0
	for _, key := range db.Keys() {
		if !strings.Contains(key, valueMark) {
			continue
		}
		text, err := db.Get(key)
		if err != nil {
			continue
		}
		all = append(all, held{key, len(key) + len(text), db.TTL(key)})
		total += len(key) + len(text)
	}
	if total <= e.bytes {
		return
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.left, b.left) })
	for _, h := range all {
		if total <= e.bytes/5*4 {
			return
		}
		db.Del(h.key)
		total -= h.size
	}
}
